/* Compares the keys and operators of a backup with those of a later database: what does a restore undo? */

import { DEFAULT_PLANS } from "../../domain/api-keys.ts";
import { withoutLinks } from "../../runtime/own-files.ts";
import { type API_KEYS, TABLES } from "../tables.ts";
import type { Connection } from "./connection.ts";
import { hasTable } from "./migrate.ts";
import { withDatabase } from "./snapshot.ts";

const COMPARED = new Set(["api_keys", "key_secrets", "plans", "operators", "operator_tokens"]);

/** The tables that are compared. A database that has the rows of these tables alone will do. */
export const COMPARED_TABLES = TABLES.filter(({ name }) => COMPARED.has(name));

/** A number later than every time. */
const NEVER = "9223372036854775807";

/** Writes a value of a key in one of the databases in SQL. It is NULL if that release had no such column. */
type ValueOf = (side: "earlier" | "later", column: keyof typeof API_KEYS.columns) => string;
/** The SQL condition that the later row allows less than the earlier one. */
type Condition = (value: ValueOf) => string;

const isFirstSet =
  (column: "revoked_at" | "disabled_at"): Condition =>
  (value) =>
    `${value("later", column)} IS NOT NULL AND ${value("earlier", column)} IS NULL`;

const isLower = (value: ValueOf, column: "per_minute" | "per_day") =>
  `${value("later", column)} < ${value("earlier", column)}`;

/**
 * How each column of a key restricts it. It is null if the column does not affect what a key allows. Every column is
 * listed, so that a restore reports everything that it undoes.
 */
const RESTRICTIONS = {
  id: null,
  name: null,
  plan: (value) => `(${isLower(value, "per_minute")} OR ${isLower(value, "per_day")})`,
  // A key without limits of its own has those of its plan, so all three are compared together.
  per_minute: null,
  per_day: null,
  created_at: null,
  expires_at: (value) =>
    `${value("later", "expires_at")} < coalesce(${value("earlier", "expires_at")}, ${NEVER})`,
  revoked_at: isFirstSet("revoked_at"),
  pardoned_at: null,
  revision: null,
  unban_revision: null,
  owner: null,
  notes: null,
  labels: null,
  access: (value) => `${value("later", "access")} = 'read' AND ${value("earlier", "access")} IS NOT 'read'`,
  disabled_at: isFirstSet("disabled_at"),
  announced_expiry: null,
} satisfies Readonly<Record<keyof typeof API_KEYS.columns, null | Condition>>;

/** The columns that can restrict a key. */
export type Restriction = {
  [Column in keyof typeof RESTRICTIONS]: (typeof RESTRICTIONS)[Column] extends null ? never : Column;
}[keyof typeof RESTRICTIONS];

/** A key that was restricted, according to the later database. */
export interface RestrictedKey {
  readonly id: number;
  readonly expiresAt: number | null;
  readonly plan: string;
  /** The limits of its own; null if it has those of its plan. */
  readonly perMinute: number | null;
  readonly perDay: number | null;
}

/** How the keys in an earlier copy of a database differ from those in the later database. */
export interface KeyDifferences {
  /** Keys that were restricted later, so that the copy allows more. A revoked key appears under `revoked_at` only. */
  readonly restricted: Readonly<Record<Restriction, readonly RestrictedKey[]>>;
  /** Keys whose secrets were replaced later. The copy accepts the earlier secrets. */
  readonly rotated: readonly number[];
  /** Keys that were created later, so that the copy does not have them. */
  readonly created: readonly number[];
  /** The names of operators who were revoked, rotated, or got another role or an earlier expiry later. */
  readonly operators: readonly string[];
}

/**
 * Compares the keys of two databases. Keys that have expired in the copy allow nothing, so they are left out unless
 * they were revoked later. Plans are compared by the limits that they had later.
 */
export function keyDifferences(earlier: string, later: string, now: number): KeyDifferences {
  return withDatabase(later, (connection) => {
    connection.value("ATTACH ? AS earlier", withoutLinks(earlier));
    const keys = "main.api_keys AS later JOIN earlier.api_keys AS earlier USING (id)";
    const isValid = `later.revoked_at IS NULL AND coalesce(earlier.expires_at, ${NEVER}) > ${now}`;
    const value = valuesIn(connection);
    const restricted = (column: Restriction) =>
      connection
        .all<Readonly<Record<keyof RestrictedKey, bigint | string | null>>>(
          `SELECT id, later.expires_at AS expiresAt, later.plan, later.per_minute AS perMinute, later.per_day AS perDay
           FROM ${keys}
           WHERE ${RESTRICTIONS[column](value)} AND ${column === "revoked_at" ? "TRUE" : isValid} ORDER BY id`,
        )
        .map(({ id, expiresAt, plan, perMinute, perDay }) => ({
          id: Number(id),
          expiresAt: numberOf(expiresAt),
          plan: String(plan),
          perMinute: numberOf(perMinute),
          perDay: numberOf(perDay),
        }));
    return {
      restricted: {
        revoked_at: restricted("revoked_at"),
        plan: restricted("plan"),
        access: restricted("access"),
        disabled_at: restricted("disabled_at"),
        expires_at: restricted("expires_at"),
      },
      rotated: idsOf(
        connection,
        `SELECT DISTINCT later.key_id AS id
         FROM main.key_secrets AS later JOIN earlier.key_secrets AS earlier USING (hash)
         WHERE later.valid_until < coalesce(earlier.valid_until, ${NEVER})
           AND later.key_id IN (SELECT id FROM ${keys} WHERE ${isValid})`,
      ),
      created: idsOf(
        connection,
        "SELECT id FROM main.api_keys WHERE id NOT IN (SELECT id FROM earlier.api_keys)",
      ),
      operators:
        hasTable(connection, "operators") && hasTable(connection, "operators", "earlier")
          ? changedOperators(connection)
          : [],
    };
  });
}

function numberOf(value: bigint | string | null): number | null {
  return value === null ? null : Number(value);
}

function valuesIn(connection: Connection): ValueOf {
  const limits = Object.fromEntries(
    (["per_minute", "per_day"] as const).map((column) => [column, limitsOfPlans(connection, column)]),
  );
  return (side, column) => {
    if (!hasColumn(connection, side, "api_keys", column)) return "NULL";
    const value = `${side}.${column}`;
    const ofPlans = limits[column];
    return ofPlans === undefined ? value : `coalesce(${value}, CASE ${side}.plan ${ofPlans} END)`;
  };
}

/** The limits of the plans as cases of SQL. The later database is the main one. */
function limitsOfPlans(connection: Connection, column: "per_minute" | "per_day"): string {
  const changed = hasTable(connection, "plans")
    ? connection.all<{ name: string; value: bigint }>(`SELECT name, ${column} AS value FROM main.plans`)
    : [];
  const limits = new Map(
    Object.entries(DEFAULT_PLANS).map(([name, { perMinute, perDay }]) => [
      name,
      BigInt(column === "per_minute" ? perMinute : perDay),
    ]),
  );
  // A database that somebody prepared may have names that are no plans.
  for (const { name, value } of changed) if (limits.has(name)) limits.set(name, value);
  return [...limits].map(([name, value]) => `WHEN '${name}' THEN ${value}`).join(" ");
}

/** Whether a table of a database has a column. Databases of earlier releases lack some. */
function hasColumn(
  connection: Connection,
  side: "earlier" | "later",
  table: "api_keys" | "operators",
  column: string,
): boolean {
  const sql = "SELECT 1 FROM pragma_table_info(?, ?) WHERE name = ?";
  return connection.value(sql, table, side === "later" ? "main" : side, column) !== undefined;
}

function changedOperators(connection: Connection): string[] {
  const expiry = (side: "earlier" | "later") =>
    `coalesce(${hasColumn(connection, side, "operators", "expires_at") ? `${side}.expires_at` : "NULL"}, ${NEVER})`;
  const rows = connection.all<{ name: string }>(`SELECT DISTINCT later.name FROM main.operators AS later
    JOIN earlier.operators AS earlier USING (id)
    JOIN earlier.operator_tokens AS token ON token.operator_id = id AND token.replaced_at IS NULL
    WHERE earlier.revoked_at IS NULL AND (later.revoked_at IS NOT NULL OR later.role <> earlier.role
      OR ${expiry("later")} < ${expiry("earlier")}
      OR token.hash IN (SELECT hash FROM main.operator_tokens WHERE replaced_at IS NOT NULL)) ORDER BY 1`);
  return rows.map(({ name }) => name);
}

function idsOf(connection: Connection, sql: string): number[] {
  return connection.all<{ id: bigint }>(`${sql} ORDER BY 1`).map(({ id }) => Number(id));
}
