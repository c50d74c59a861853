import { accessSync, constants, existsSync } from "node:fs";
import { countOf, grouped } from "../text/formatting.ts";
import { type Config, describeStorage, type StorageConfig, valkeyOf } from "../config/config.ts";
import { UsageError } from "../config/usage-error.ts";
import type { DataDirectory } from "../data-directory.ts";
import { DAY_MS } from "../domain/rate-limit.ts";
import { maxConnectionsWithin } from "../http1/index.ts";
import { postgresOf } from "../postgres-options.ts";
import { inspectValkey, type ValkeyInformation } from "../rate-limit/valkey/maintenance.ts";
import { type SchemaState, schemaState } from "../store/migrations.ts";
import { inspectPostgres, type PostgresState } from "../store/postgres/inspect.ts";
import { CONNECTIONS_PER_INSTANCE } from "../store/postgres/pool.ts";
import { sqliteVersion } from "../store/sqlite/database.ts";
import { SQLITE_MIGRATIONS } from "../store/sqlite/migrations.ts";
import { inspectDatabase } from "../store/sqlite/snapshot.ts";
import { QUOTA_MIGRATIONS } from "../store/sqlite/quota-store.ts";
import { check, type Finding, problemsOr, reasonOf } from "./finding.ts";
import { checkReplication } from "./replication.ts";

const migrations = check("migrations");
const UPGRADE = "install that release, or restore a backup from before the upgrade";

function schemaFinding({ version, supportedVersion: newest, rejection }: SchemaState): Finding {
  if (rejection !== undefined) return migrations.error(rejection, UPGRADE);
  if (version === newest) return migrations.ok(`the schema has version ${version}, the newest`);
  return version > newest
    ? migrations.ok(`the schema has version ${version}, of a newer release, and this one can run on it`)
    : migrations.warning(
        `the schema has version ${version}, and the next start migrates it to ${newest}`,
        "make a backup before you start this release",
      );
}

const backup = check("backup");
const OLD_BACKUP_MS = 2 * DAY_MS;

/** Checks the age of the last backup that `petstore backup` has recorded. */
function backupFinding(lastAt: number | undefined, now: number): Finding {
  const remedy = "run petstore backup every night, as docs/backup.md shows";
  if (lastAt === undefined)
    return backup.warning("petstore backup has never been run on this database", remedy);
  const text = `the last backup was made ${new Date(lastAt).toISOString()}`;
  return now - lastAt > OLD_BACKUP_MS ? backup.warning(text, remedy) : backup.ok(text);
}

const openFiles = check("open files");
const clock = check("clock");

/**
 * The number of connections that suffices if the operator has not set one. A server then runs with fewer than the
 * maximum.
 */
const ENOUGH_CONNECTIONS = 10_000;

export function checkOpenFiles(
  { maxConnections }: Pick<Config, "maxConnections">,
  possible = maxConnectionsWithin(maxConnections),
): Finding {
  const wanted = maxConnections ?? ENOUGH_CONNECTIONS;
  if (possible >= wanted) return openFiles.ok(`the limit allows ${grouped(possible)} connections`);
  return openFiles.warning(
    `the limit allows ${grouped(possible)} of ${grouped(wanted)} connections`,
    "raise it: LimitNOFILE=65536 in the systemd unit, or ulimit -n 65536 in a shell",
  );
}

/** A clock that shows an earlier time than this release is wrong. */
const RELEASED_AT = Date.UTC(2026, 10, 1);
const CLOCK_TOLERANCE_MS = 2_000;

interface ClockComparison {
  /** The name of the other machine's service, such as `PostgreSQL`. */
  readonly name: string;
  /** The clock of that machine minus the clock of this one. */
  readonly differenceMs: number;
}

interface ClockOptions {
  readonly now: number;
  /** The newest time in the data. */
  readonly newestTime: number | undefined;
  readonly comparisons: readonly ClockComparison[];
}

const SYNCHRONIZE = "synchronize the clock with NTP: timedatectl set-ntp true";

export function checkClock({ now, newestTime = 0, comparisons }: ClockOptions): Finding[] {
  const today = new Date(now).toISOString();
  if (now < RELEASED_AT)
    return [clock.error(`it is ${today} by this machine, before this release was made`, SYNCHRONIZE)];
  const different = comparisons.filter(({ differenceMs }) => Math.abs(differenceMs) > CLOCK_TOLERANCE_MS);
  return problemsOr(clock.ok(`it is ${today}`), [
    ...different.map(({ name, differenceMs }) =>
      clock.warning(
        `the clock of ${name} is ${(Math.abs(differenceMs) / 1000).toFixed(1)} s ${differenceMs > 0 ? "ahead of" : "behind"} this machine's`,
        `${SYNCHRONIZE}, on both machines`,
      ),
    ),
    newestTime > now + CLOCK_TOLERANCE_MS &&
      clock.warning(
        `the data has a key of ${new Date(newestTime).toISOString()}, which is later than now (${today})`,
        SYNCHRONIZE,
      ),
  ]);
}

const sqlite = check("SQLite");
const database = check("database");
const quotas = check("rate limit usage");

const RESTORE =
  "stop the server, keep the file for an analysis, and restore a backup with petstore restore --replace";

/** The findings of a check, and the facts that the check of the clock needs. */
export interface StoreFindings {
  readonly findings: readonly Finding[];
  readonly newestTime?: number | undefined;
  readonly clocks?: readonly ClockComparison[];
}

export function checkSqlite(directory: DataDirectory, now: number): StoreFindings {
  const { store } = directory.files;
  const { version, isSupported, oldest } = sqliteVersion();
  const library = isSupported
    ? sqlite.ok(`version ${version}`)
    : sqlite.error(
        `version ${version} is too old`,
        `use ${oldest} or newer: run npm ci in the directory of Petstore`,
      );
  const lost = directory.findLostDatabase();
  if (lost !== undefined) return { findings: [library, database.error(lost.message, lost.remedy)] };
  try {
    if (!existsSync(store))
      return { findings: [library, database.ok(`${store} does not exist yet; the server creates it`)] };
    const { lastBackupAt, newestTime, problems, rows, steps } = inspectDatabase(store);
    const [problem] = problems;
    if (problem !== undefined)
      return {
        findings: [library, database.error(`${store} is not sound: ${problem}`, RESTORE)],
        newestTime,
      };
    const { pets = 0, orders = 0, api_keys: keys = 0 } = rows;
    const contents = `${countOf(pets, "pet")}, ${countOf(orders, "order")}, ${countOf(keys, "key")}`;
    const findings = [
      library,
      database.ok(`${store} is sound: ${contents}`),
      schemaFinding(schemaState(steps, SQLITE_MIGRATIONS)),
      backupFinding(lastBackupAt, now),
    ];
    return { findings, newestTime };
  } catch (error) {
    const remedy = isAccessible(store)
      ? RESTORE
      : `run the command as the user of the server, or give the file to that user: chown USER ${store}`;
    return { findings: [library, database.error(reasonOf(error), remedy)] };
  }
}

export function isAccessible(path: string, mode = constants.R_OK | constants.W_OK): boolean {
  try {
    accessSync(path, mode);
    return true;
  } catch {
    return false;
  }
}

/** Checks the quotas of keys and addresses that a server counts in its own process. */
export function checkQuotaStore({ directory, limitsUrls }: StorageConfig): Finding[] {
  const { quotaStore } = directory.files;
  if (limitsUrls !== undefined || !existsSync(quotaStore)) return [];
  const remedy = `stop the server and move ${quotaStore} away: counts start anew`;
  try {
    const { problems, steps } = inspectDatabase(quotaStore);
    const [problem] = problems;
    if (problem !== undefined) return [quotas.error(`${quotaStore} is not sound: ${problem}`, remedy)];
    const { rejection } = schemaState(steps, QUOTA_MIGRATIONS);
    if (rejection !== undefined) return [quotas.error(`${quotaStore}: ${rejection}`, UPGRADE)];
    return [quotas.ok(`${quotaStore} is sound`)];
  } catch (error) {
    return [quotas.error(reasonOf(error), remedy)];
  }
}

const postgres = check("PostgreSQL");

/** An instance that is being replaced, commands and backups, and what PostgreSQL reserves. */
const OTHER_CONNECTIONS = 2 * CONNECTIONS_PER_INSTANCE + 3;

export async function checkPostgres(storage: StorageConfig, now: () => number): Promise<StoreFindings> {
  const name = describeStorage(storage).data;
  try {
    const state = await inspectPostgres(postgresOf(storage), now);
    const ok = postgres.ok(`${name} is reachable; version ${state.version}`);
    const findings = problemsOr(ok, postgresProblems(state));
    findings.push(checkReplication(state.replication));
    if (state.schema.version > 0)
      findings.push(schemaFinding(state.schema), backupFinding(state.lastBackupAt, now()));
    return { findings, clocks: [{ name: "PostgreSQL", differenceMs: state.clockDifferenceMs }] };
  } catch (error) {
    const message = `${name} cannot be used: ${reasonOf(error)}`;
    const remedy = "check --database-url, that PostgreSQL runs, and that this machine may connect to it";
    return { findings: [postgres.error(message, remedy)] };
  }
}

function postgresProblems(state: PostgresState): readonly (Finding | false)[] {
  const { version, oldestVersion, encoding, freeConnections, maxConnections, servers } = state;
  const neededConnections = servers * CONNECTIONS_PER_INSTANCE + OTHER_CONNECTIONS;
  return [
    version < oldestVersion &&
      postgres.error(`version ${version} is too old`, `use PostgreSQL ${oldestVersion} or newer`),
    encoding !== "UTF8" &&
      postgres.error(
        `the encoding of the database is ${encoding}`,
        "create a database with ENCODING 'UTF8' TEMPLATE template0",
      ),
    state.isStandby &&
      postgres.error("the server is a standby and accepts no writes", "connect to the primary"),
    !state.isDurable &&
      postgres.warning(
        "a power failure can lose writes that were acknowledged to clients",
        "set fsync = on and synchronous_commit = on",
      ),
    freeConnections < CONNECTIONS_PER_INSTANCE &&
      postgres.warning(
        `${freeConnections} more connections are possible, and an instance needs ${CONNECTIONS_PER_INSTANCE}`,
        "raise max_connections; docs/deployment.md has the arithmetic",
      ),
    maxConnections < neededConnections &&
      postgres.warning(
        `max_connections is ${maxConnections}, and ${countOf(servers, "instance")} with what else connects may need ${neededConnections}`,
        `set max_connections to ${neededConnections} or more`,
      ),
    state.schema.version === 0 &&
      !state.canCreateSchema &&
      postgres.error(
        "the user may not create the schema of the environment",
        "GRANT CREATE ON DATABASE … TO …, or run petstore migrate once as the owner",
      ),
  ];
}

const valkey = check("Valkey");
const OLDEST_MAJOR_VERSION = 7;

export async function checkValkey(storage: StorageConfig, now: () => number): Promise<StoreFindings> {
  const name = describeStorage(storage).rateLimits;
  try {
    const { information, clockDifferenceMs } = await inspectValkey(valkeyOf(storage), now);
    const version = information
      ? `version ${information.version}`
      : "its version is not visible to this user";
    const ok = valkey.ok(`${name} is reachable; ${version}`);
    const findings = problemsOr(ok, information ? valkeyProblems(information) : []);
    return { findings, clocks: [{ name: "Valkey", differenceMs: clockDifferenceMs }] };
  } catch (error) {
    const reason = reasonOf(error);
    if (error instanceof UsageError) return { findings: [valkey.error(reason, "correct --limits-ca")] };
    const message = `${name} cannot be used: ${reason}`;
    if (reason.startsWith("READONLY")) return { findings: [valkey.error(message, "connect to the primary")] };
    const remedy =
      "check --limits-url, its user's permissions (docs/deployment.md) and that Valkey runs; until then PostgreSQL counts";
    return { findings: [valkey.error(message, remedy)] };
  }
}

function valkeyProblems(information: ValkeyInformation): readonly (Finding | false)[] {
  const { version, maxmemoryPolicy, maxmemoryBytes } = information;
  return [
    Number.parseInt(version, 10) < OLDEST_MAJOR_VERSION &&
      valkey.error(`version ${version} is too old`, "use Valkey 7.2 or later, or Redis 7"),
    maxmemoryBytes > 0 &&
      maxmemoryPolicy !== "noeviction" &&
      valkey.warning(
        `maxmemory-policy is ${maxmemoryPolicy}, so Valkey may drop counts and bans when its memory is full`,
        "set maxmemory-policy noeviction",
      ),
  ];
}
