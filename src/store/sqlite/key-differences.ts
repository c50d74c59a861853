/* Compares the keys, plans and operators of a backup with those of a later database: what does a restore undo? */

import { type PlanName, limitsOf, type Plans } from "../../domain/plans.ts";
import { LIMITED_PLANS, type Policy } from "../../domain/policy.ts";
import type { BanRules } from "../../domain/ban-rules.ts";
import type { Limits } from "../../domain/rate-limit.ts";
import { withoutLinks } from "../../runtime/own-files.ts";
import { readStoredPolicy } from "../policy.ts";
import { type API_KEYS, TABLES } from "../sql/tables.ts";
import type { Connection } from "./connection.ts";
import { withDatabase } from "./snapshot.ts";

const COMPARED = new Set(["api_keys", "key_secrets", "plans", "ban_rules", "operators", "operator_tokens"]);

/** The tables that are compared. A database that has the rows of these tables alone will do. */
export const COMPARED_TABLES = TABLES.filter(({ name }) => COMPARED.has(name));

/** A row of a key or of an operator. The database of an earlier release lacks some of the columns. */
type Row<Column extends string> = Readonly<Partial<Record<Column, bigint | string | null>>>;
type KeyRow = Row<keyof typeof API_KEYS.columns>;
/** Whether the later row allows less than the earlier one. */
type IsRestricted = (later: KeyRow, earlier: KeyRow, plans: Plans) => boolean;

const numberOf = (value: bigint | string | null | undefined) =>
  typeof value === "bigint" ? Number(value) : undefined;
const isEarlier = (later: KeyRow["expires_at"], earlier: KeyRow["expires_at"]) =>
  (numberOf(later) ?? Infinity) < (numberOf(earlier) ?? Infinity);
const isSet = (column: "revoked_at" | "disabled_at"): IsRestricted => {
  return (later, earlier) => numberOf(later[column]) !== undefined && numberOf(earlier[column]) === undefined;
};

function ownLimitsOf(key: KeyRow): Limits | undefined {
  const [perMinute, perDay] = [numberOf(key.per_minute), numberOf(key.per_day)];
  return perMinute === undefined || perDay === undefined ? undefined : { perMinute, perDay };
}

const hasLowerLimits: IsRestricted = (later, earlier, plans) => {
  // The table has no other plans.
  const [now, before] = [later, earlier].map((key) =>
    limitsOf(key.plan as PlanName, ownLimitsOf(key), plans),
  );
  return now !== undefined && before !== undefined && areLower(now, before);
};

const areLower = (now: Limits, before: Limits) =>
  now.perMinute < before.perMinute || now.perDay < before.perDay;

const areStricter = (now: BanRules, before: BanRules) =>
  now.strikes < before.strikes ||
  now.graceMs < before.graceMs ||
  now.lengthMs > before.lengthMs ||
  now.maxLengthMs > before.maxLengthMs;

/**
 * Whether the later value of a column restricts a key. It is null for a column that restricts nothing, and for the
 * limits of a key, which are compared with its plan. Every column is listed, so that a restore reports everything that
 * it undoes.
 */
const RESTRICTIONS = {
  id: null,
  name: null,
  plan: hasLowerLimits,
  per_minute: null,
  per_day: null,
  created_at: null,
  expires_at: (later, earlier) => isEarlier(later.expires_at, earlier.expires_at),
  revoked_at: isSet("revoked_at"),
  pardoned_at: null,
  revision: null,
  unban_revision: null,
  owner: null,
  notes: null,
  labels: null,
  access: (later, earlier) => later.access === "read" && earlier.access !== "read",
  disabled_at: isSet("disabled_at"),
  announced_expiry: null,
} satisfies Readonly<Record<keyof typeof API_KEYS.columns, null | IsRestricted>>;

/** The columns that can restrict a key. */
export type Restriction = {
  [Column in keyof typeof RESTRICTIONS]: (typeof RESTRICTIONS)[Column] extends null ? never : Column;
}[keyof typeof RESTRICTIONS];

/** A key that was restricted, according to the later database. */
export interface RestrictedKey {
  readonly id: number;
  readonly expiresAt: number | undefined;
  readonly plan: string;
  /** Undefined if the key has the limits of its plan. */
  readonly limits: Limits | undefined;
}

/** Reads the limits of the plans and the ban rules. */
function policyIn(path: string): Policy {
  return withDatabase(path, (connection) => connection.runAll(readStoredPolicy));
}

/**
 * Compares the keys of two databases. Keys that have expired in the copy allow nothing, so they are left out unless
 * they were revoked later. Plans are compared by the limits that they had later.
 */
export function keyDifferences(earlierPath: string, laterPath: string, now: number) {
  const [before, { plans, ban }] = [policyIn(earlierPath), policyIn(laterPath)];
  return withDatabase(laterPath, (connection) => {
    connection.value("ATTACH ? AS earlier", withoutLinks(earlierPath));
    const restricted: Record<Restriction, RestrictedKey[]> = {
      revoked_at: [],
      plan: [],
      access: [],
      disabled_at: [],
      expires_at: [],
    };
    /** Keys that were created later, so that the copy does not have them. */
    const created: number[] = [];
    const valid = new Set<number>();
    for (const later of connection.prepared<KeyRow>("SELECT * FROM main.api_keys ORDER BY id").iterate()) {
      const id = Number(later.id);
      const earlier = connection.get<KeyRow>("SELECT * FROM earlier.api_keys WHERE id = ?", id);
      if (earlier === undefined) {
        created.push(id);
        continue;
      }
      const isValid = numberOf(later.revoked_at) === undefined && isEarlier(BigInt(now), earlier.expires_at);
      if (isValid) valid.add(id);
      const expiresAt = numberOf(later.expires_at);
      const key = { id, expiresAt, plan: String(later.plan), limits: ownLimitsOf(later) };
      for (const [column, keys] of Object.entries(restricted)) {
        const isRestricted = RESTRICTIONS[column as Restriction];
        if ((isValid || column === "revoked_at") && isRestricted(later, earlier, plans)) keys.push(key);
      }
    }
    return {
      /** Keys that were restricted later, so that the copy allows more. A revoked key is under `revoked_at` only. */
      restricted,
      /** Keys whose secrets were rotated later. The copy accepts the earlier secrets. */
      rotated: rotatedKeys(connection).filter((id) => valid.has(id)),
      created,
      /** Plans whose limits were lowered later, with those limits. */
      plans: LIMITED_PLANS.filter((name) => areLower(plans[name], before.plans[name])).map((name) => {
        const { perMinute, perDay } = plans[name];
        return { name, perMinute, perDay };
      }),
      /** The later ban rules, if they are stricter. */
      ban: areStricter(ban, before.ban) ? ban : undefined,
      operators: changedOperators(connection),
    };
  });
}

function rotatedKeys(connection: Connection): number[] {
  const rows = connection.all<{ id: bigint }>(
    `SELECT DISTINCT later.key_id AS id FROM main.key_secrets AS later JOIN earlier.key_secrets AS earlier USING (hash)
     WHERE later.valid_until IS NOT NULL
       AND (earlier.valid_until IS NULL OR later.valid_until < earlier.valid_until) ORDER BY 1`,
  );
  return rows.map(({ id }) => Number(id));
}

/** The names of operators who were revoked, rotated, or got another role or an earlier expiry later. */
function changedOperators(connection: Connection): string[] {
  type OperatorRow = Row<"id" | "name" | "role" | "revoked_at" | "expires_at">;
  const wasRotated = (id: OperatorRow["id"]) =>
    connection.get(
      `SELECT 1 FROM earlier.operator_tokens AS token JOIN main.operator_tokens AS later USING (hash)
       WHERE token.operator_id = ? AND token.replaced_at IS NULL AND later.replaced_at IS NOT NULL`,
      id ?? null,
    ) !== undefined;
  const operators = connection.all<OperatorRow>("SELECT * FROM main.operators ORDER BY name");
  return operators.flatMap(({ id, name, role, revoked_at, expires_at }) => {
    const earlier = connection.get<OperatorRow>("SELECT * FROM earlier.operators WHERE id = ?", id ?? null);
    if (earlier === undefined || earlier.revoked_at !== null) return [];
    const isChanged =
      revoked_at !== null || role !== earlier.role || isEarlier(expires_at, earlier.expires_at);
    return isChanged || wasRotated(id) ? [String(name)] : [];
  });
}
