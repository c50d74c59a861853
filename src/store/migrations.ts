/*
 * Words that stored data and the operators' API keep from their first release, and what they are called elsewhere:
 *
 * - `admitted`: requests that the rate limiter allowed
 * - `attempts`: the results of requests with an Idempotency-Key
 * - `pardoned_at`: when a ban of the key was lifted, `unbannedAt`
 * - `key.rolled`, `admin.token-rolled`: a secret or token was rotated
 * - `standings`, `usage` of a key and of log events: quotas
 * - `refused_at`: when a grace period began, with the first rejected request or with a strike
 * - animals, in the names and comments of steps: pets
 */

import packageJson from "../../package.json" with { type: "json" };

/**
 * One step of a schema. A released step is never edited, not even its name and its comments, because databases store
 * them. A change of the schema is a new step at the end.
 */
export interface Migration {
  /** The versions ascend. A missing number belonged to a step that no release ended with. */
  readonly version: number;
  /** The name that the database stores. */
  readonly name: string;
  /**
   * The oldest release that can run on the tables that the step leaves. The database stores it for the programs that do
   * not have the step. Releases before 1.2.0 do not read it: they start on no tables that are newer than themselves.
   */
  readonly oldestRelease: string;
  readonly sql: string;
}

/** A row of the table `schema_migrations`, as far as a program of any release needs it. */
export interface AppliedStep {
  readonly version: number | bigint;
  /** It is missing or null if release 1.1.0 or an earlier one applied the step. */
  readonly oldest_release?: string | null;
}

/** Selects the steps that a database has. An earlier release has made the table without the last column. */
export const SELECT_STEPS = "SELECT * FROM schema_migrations ORDER BY version";

type Versions = readonly Pick<Migration, "version">[];

export function latestVersion(migrations: Versions): number {
  return migrations.at(-1)?.version ?? 0;
}

/** The tables of a database, compared with those that this program makes. */
export interface SchemaState {
  /** The version of the tables; 0 if there are none yet. */
  readonly version: number;
  /** The newest version that this program knows. */
  readonly supportedVersion: number;
  /** Why this program cannot run on the tables, which a newer release has changed; undefined if it can. */
  readonly rejection: string | undefined;
}

/** Compares the steps of a database with those of this program, whose release is `release`. */
export function schemaState(
  steps: readonly AppliedStep[],
  migrations: Versions,
  release = packageJson.version,
): SchemaState {
  const version = Number(steps.at(-1)?.version ?? 0);
  const supportedVersion = latestVersion(migrations);
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

/** A version that is later than every release. */
const NO_RELEASE = `${Number.MAX_SAFE_INTEGER}.0.0`;

/** Throws if this program cannot run on the tables. */
export function rejectNewerTables({ rejection }: SchemaState): void {
  if (rejection !== undefined) throw new Error(rejection);
}
