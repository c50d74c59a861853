/**
 * The actions of clients and operators while faults were injected. Times are milliseconds since the start of the run.
 */
export interface History {
  readonly operations: readonly Operation[];
  /** The rate limits per minute of keys, by name. */
  readonly limits: Readonly<Record<string, number>>;
  /** When keys expire, by name. */
  readonly expiries: Readonly<Record<string, number>>;
  readonly disturbances: readonly Disturbance[];
  /** The periods in which a server's clock differed from that of the clients. */
  readonly clocks: readonly ClockPeriod[];
  /** The data that each server showed at the end. */
  readonly endings: readonly Ending[];
  /** The audit entries that are stored at the end and were not delivered to the webhook, as text. */
  readonly undelivered: readonly string[];
  /** Until when writes may be lost, because a standby was promoted for which the primary did not wait. */
  readonly mayBeLostUntil: number | undefined;
  /** The servers that ended by themselves or with an error, or did not start. */
  readonly failures: readonly string[];
}

/** One request or command. */
export interface Operation {
  /** The number of the server, starting with 1; 0 stands for a command. */
  readonly server: number;
  /** The name of the key or operator. */
  readonly credential: string;
  readonly startedAt: number;
  /** A time that is not later than when the last byte of the request was sent. */
  readonly sentAt: number;
  readonly endedAt: number;
  /** The status; 0 means that no response arrived. */
  readonly status: number;
  readonly code?: string | undefined;
  readonly requestId?: string;
  /** Why the server responded 503, from its log; undefined if it did not log that. */
  readonly reason?: string | undefined;
  readonly action: Action;
}

export type Action =
  | { readonly kind: "create"; readonly name: string; readonly idempotencyKey?: string; readonly id?: number }
  | { readonly kind: "order"; readonly petId: number; readonly idempotencyKey?: string; readonly id?: number }
  /** Reads the pets with identifiers above `after` and up to `upTo`, all of which must exist. */
  | { readonly kind: "read"; readonly after: number; readonly upTo: number; readonly pets: readonly Pet[] }
  | { readonly kind: "change"; readonly change: CredentialChange; readonly of: string }
  /** Reads the state of a key. */
  | { readonly kind: "inspect"; readonly of: string; readonly state: string }
  /** Any other request. If it changes data, `name` is the name of that data. */
  | { readonly kind: "use"; readonly what: string; readonly name?: string };

export type CredentialChange = "create" | "disable" | "revoke";

export interface Pet {
  readonly id: number;
  readonly name: string;
  readonly isOrdered: boolean;
}

/** A period in which a part does not work as usual, because of a fault or a busy machine. */
export interface Disturbance extends Period {
  readonly part:
    "primary" | "commit" | "promotion" | "standby" | "certificate" | "server" | "restore" | "machine";
  /** The number of the server. */
  readonly number?: number;
  /** The disturbance, such as "is frozen". */
  readonly what: string;
}

export interface Period {
  readonly from: number;
  readonly until: number;
}

export interface ClockPeriod extends Period {
  readonly server: number;
  /** How far the clock is ahead; undefined while it is being set. */
  readonly aheadMs: number | undefined;
}

export interface Ending {
  readonly server: number;
  readonly pets: readonly Pet[];
  readonly orders: readonly { readonly id: number; readonly petId: number }[];
  /** The names of keys. */
  readonly keys: readonly string[];
}

const seconds = (ms: number) => (Number.isFinite(ms) ? `${(ms / 1_000).toFixed(3)} s` : "the end");

export function operationText({ action, ...operation }: Operation): string {
  const { server, credential, startedAt, sentAt, endedAt, status, code, reason } = operation;
  const where = server === 0 ? "command" : `server ${server}`;
  const sent = sentAt - startedAt > 1 ? `, sent until ${seconds(sentAt)}` : "";
  const because = reason === undefined ? "" : ` (${reason})`;
  const got = status === 0 ? `no response (${code ?? ""})` : `${status}${code ? ` ${code}` : ""}${because}`;
  const text = `${actionText(action)} by ${credential}${sent}: ${got} at ${seconds(endedAt)}`;
  return `${seconds(startedAt)} ${where}: ${text}`;
}

function actionText(action: Action): string {
  switch (action.kind) {
    case "create":
      return `create ${action.name}${detailsOf(action)}`;
    case "order":
      return `order pet ${action.petId}${detailsOf(action)}`;
    case "read":
      return `read pets after ${action.after} up to ${action.upTo}, ${action.pets.length} found`;
    case "change":
      return `${action.change} ${action.of}`;
    case "inspect":
      return `inspect ${action.of}, ${action.state}`;
    case "use":
      return action.what;
  }
}

function detailsOf({
  idempotencyKey,
  id,
}: {
  readonly idempotencyKey?: string;
  readonly id?: number;
}): string {
  return `${idempotencyKey === undefined ? "" : ", idempotent"}${id === undefined ? "" : ` = ${id}`}`;
}

export function disturbanceText({ part, number, what, from, until }: Disturbance): string {
  return `${seconds(from)} to ${seconds(until)}: ${part}${number === undefined ? "" : ` ${number}`} ${what}`;
}
