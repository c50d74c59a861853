/*
 * Words that stored data and the operators' API keep from their first release, and what they are called elsewhere:
 *
 * - `admitted`: requests that the rate limiter allowed
 * - `server_settings`: values that servers and commands store, among them those of settings that all servers share
 * - `attempts`: the results of requests with an Idempotency-Key
 * - `pardoned_at`: when the key was unbanned, `unbannedAt`
 * - `entry` of a pet: its JSON
 * - `key.rolled`, `admin.token-rolled`: a secret or token was rotated; the console and the command line show `rotated`
 * - `standings`, `usage` of a key and of log events: quotas
 * - `refused_at`: when a grace period began, with the first rejected request or with a strike
 * - animals, in the names and comments of steps: pets
 */

import packageJson from "../../../package.json" with { type: "json" };
import type { Attribution, AuditEntry, NewAuditEntry } from "../../domain/audit.ts";

/**
 * One step of the schema of a database. A released step is never edited, not even its name and its comments, because
 * databases store them.
 */
export interface Migration<Sql = string> {
  /** The versions ascend. A missing number belonged to a step that no release ended with. */
  readonly version: number;
  /** The name that the database stores. */
  readonly name: string;
  /**
   * The oldest release that can run on the tables that the step leaves. The database stores it for the programs that do
   * not have the step.
   */
  readonly worksWith: string;
  readonly sql: Sql;
}

/**
 * A list of statements is for a step that takes long on a large table, while servers serve requests. Each is a
 * transaction of its own and has the same effect when it is repeated: an interrupted start begins the step again.
 */
export type PostgresMigration = Migration<string | readonly string[]>;

/** A step of both databases, or of one: without its SQL, a database has no such step. */
export interface MigrationStep extends Pick<Migration, "name" | "worksWith"> {
  readonly sqlite?: Migration["sql"];
  readonly postgres?: PostgresMigration["sql"];
}
export type Engine = "sqlite" | "postgres";

/** The steps that a release has added. */
export interface ReleaseSteps {
  readonly release: string;
  readonly steps: readonly MigrationStep[];
}

/** A row of the table `schema_migrations`, as far as a program of any release needs it. */
export interface AppliedStep {
  readonly version: number | bigint;
  readonly oldest_release: string | null;
}

/** Selects the steps that a database has. Releases before 1.2.0 have made the table without the last column. */
export const SELECT_STEPS = "SELECT * FROM schema_migrations ORDER BY version";

type Versions = readonly Pick<AppliedStep, "version">[];

/** The version of the tables after all of the steps; 0 without any. */
export function latestVersion(steps: Versions): number {
  return Number(steps.at(-1)?.version ?? 0);
}

/**
 * Which tables a program opens: existing ones, or new ones too, or also those of an earlier release, which the Migrator
 * brings up to date.
 */
export type TableUse = "existing" | "create" | Migrator;

/** Who migrates, and when. */
export interface Migrator extends Attribution {
  /** Whether to migrate while servers run that cannot use the new tables. */
  readonly isForced?: boolean;
  /** Whether another process is the server of this SQLite database. */
  readonly isServedElsewhere?: boolean;
  /** Called with the audit entry after the tables of an earlier release were migrated. */
  readonly onMigrated?: (entry: AuditEntry) => void;
}

/** Makes the entry of a migration from one version of the tables to another. */
export function databaseMigrated(from: number, to: number, { actor, at }: Attribution): NewAuditEntry {
  const after = { schemaVersion: to, release: packageJson.version };
  return { actor, at, action: "database.migrated", before: { schemaVersion: from }, after };
}

/** The tables of a database, compared with those that this program makes. */
export interface SchemaState {
  /** The version of the tables; 0 if there are none yet. */
  readonly version: number;
  /** The newest version that this program knows. */
  readonly supportedVersion: number;
  /** Why this program cannot run on the tables, or migrate them; undefined if it can. */
  readonly rejection: string | undefined;
}

/** Compares the steps of a database with those of this program, whose release is `release`. */
export function schemaState(
  steps: readonly AppliedStep[],
  migrations: Versions,
  release = packageJson.version,
): SchemaState {
  const version = latestVersion(steps);
  const supportedVersion = latestVersion(migrations);
  if (isBeforeSteps(version, migrations)) return { version, supportedVersion, rejection: EARLIER_TABLES };
  const newer = steps.filter((step) => step.version > supportedVersion);
  const needed = newer
    .map((step) => step.oldest_release ?? NO_RELEASE)
    .toSorted(Bun.semver.order)
    .at(-1);
  if (needed === undefined || Bun.semver.order(needed, release) <= 0)
    return { version, supportedVersion, rejection: undefined };
  const required = needed === NO_RELEASE ? "a newer petstore" : `petstore ${needed} or newer`;
  return { version, supportedVersion, rejection: `the tables need ${required}; this is petstore ${release}` };
}

/** Whether tables have no step that the program knows: a release before 1.3.0 has made them. */
export function isBeforeSteps(version: number, migrations: Versions): boolean {
  return version > 0 && version < Number(migrations[0]?.version);
}
const EARLIER_TABLES =
  "the tables are of a release before 1.3.0; petstore 1.3.0 migrates them, and restores backups of them";

export class EarlierTables extends Error {
  override readonly message = EARLIER_TABLES;
}

/** A version that is later than every release. */
const NO_RELEASE = `${Number.MAX_SAFE_INTEGER}.0.0`;

/** The database has no tables, so there is nothing to read. */
export class NoTables extends Error {
  override readonly message = "it has no tables";
}

/** Throws unless the program can use the tables, or may make or migrate them. */
export function checkTables({ rejection, version, supportedVersion }: SchemaState, use: TableUse): void {
  if (rejection !== undefined) throw new Error(rejection);
  if (version >= supportedVersion || typeof use === "object") return;
  if (version > 0) {
    throw new Error(
      `its tables have version ${version}, and petstore ${packageJson.version} needs version ${supportedVersion}; petstore serve migrates them when it starts, and so does petstore migrate; nothing was changed`,
    );
  }
  if (use === "existing") throw new NoTables();
}

export const isUpToDate = ({ version, supportedVersion }: SchemaState): boolean =>
  version >= supportedVersion;

/** Throws if a server that runs, of which `running` are the releases, cannot run on the tables that the steps leave. */
export function rejectRunningServers(
  steps: readonly Pick<Migration, "version" | "name" | "worksWith">[],
  running: readonly string[],
): void {
  const [oldest] = running.toSorted(Bun.semver.order);
  if (oldest === undefined) return;
  const step = steps.find((each) => Bun.semver.order(oldest, each.worksWith) < 0);
  if (step === undefined) return;
  throw new Error(
    `step ${step.version} (${step.name}) leaves tables that need petstore ${step.worksWith} or newer, and a server of an earlier release is running; stop it first, or run petstore migrate --force; nothing was changed`,
  );
}
