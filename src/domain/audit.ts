/** Who made a change. `name` tells more: the user of the machine, the address of the browser, the name of the server. */
export interface Actor {
  readonly kind: "console" | "command line" | "admin API" | "server";
  readonly name?: string;
}

/** Who makes a change, and when (milliseconds since the epoch). */
export type Attribution = Pick<NewAuditEntry, "actor" | "at">;

export const AUDIT_ACTIONS = [
  "key.created",
  "key.updated",
  "key.rolled",
  "key.revoked",
  "key.banned",
  "key.unbanned",
  "pet.updated",
  "pet.deleted",
  "order.updated",
  "admin.signed-in",
  "admin.sign-in-failed",
  "admin.signed-out",
  "admin.token-rolled",
] as const;
export type AuditAction = (typeof AUDIT_ACTIONS)[number];

export interface AuditTarget {
  readonly kind: "key" | "pet" | "order";
  readonly id: bigint;
}

/** Values of the fields that changed. Never a secret or its hash. */
export type AuditedValues = Readonly<Record<string, string | number | boolean | null | readonly string[]>>;

/** Times are milliseconds since the epoch. */
export interface NewAuditEntry {
  readonly at: number;
  readonly actor: Actor;
  readonly action: AuditAction;
  readonly target?: AuditTarget;
  readonly before?: AuditedValues;
  readonly after?: AuditedValues;
}

export interface AuditEntry extends NewAuditEntry {
  readonly id: bigint;
}

/** Every condition that is given has to hold. */
export interface AuditQuery {
  readonly action?: AuditAction;
  readonly actor?: Actor["kind"];
  readonly target?: AuditTarget;
  /** From this time on. */
  readonly since?: number;
  /** Before this time. */
  readonly until?: number;
  /** Only entries with a smaller identifier: for the next page. */
  readonly before?: bigint;
  readonly limit: number;
}
