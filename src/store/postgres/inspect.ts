import type { SQL } from "bun";
import { hostUrls } from "../../text/host-urls.ts";
import { GONE_AFTER_MS } from "../../domain/servers.ts";
import { LAST_BACKUP } from "../../domain/stored-values.ts";
import { laterOf, type Timeline, UNKNOWN_TIMELINE } from "../../domain/timeline.ts";
import { type SchemaState, schemaState } from "../sql/migrations.ts";
import { connect, withConnection } from "./connection.ts";
import { OLDEST_VERSION, readSchema, tableExists } from "./migrate.ts";
import { POSTGRES_MIGRATIONS } from "../sql/migration-steps.ts";
import { Primary, type PrimaryOptions } from "./primary.ts";
import { readReplication, type Replication } from "./replication.ts";

interface ServerState {
  /** The major version, such as 17. */
  readonly version: number;
  readonly encoding: string;
  readonly isStandby: boolean;
  /** Whether a commit that was acknowledged survives a power failure. */
  readonly isDurable: boolean;
  readonly freeConnections: number;
  readonly maxConnections: number;
  readonly canCreateSchema: boolean;
}

export interface PostgresState extends ServerState {
  readonly oldestVersion: number;
  readonly schema: SchemaState;
  readonly replication: Replication;
  /** The number of servers that run on the database. */
  readonly servers: number;
  /** When the last backup was made, in milliseconds since the epoch. */
  readonly lastBackupAt: number | undefined;
}

interface InspectOptions extends Pick<PrimaryOptions, "latestTimeline"> {
  readonly url: string;
  readonly schema: string;
}

/** Finds the server that Petstore would use, without changing anything. */
export async function findPrimary({ url, schema, latestTimeline: latest }: InspectOptions): Promise<string> {
  const laterThan = async (found: Timeline) =>
    laterOf((await latest?.raise(UNKNOWN_TIMELINE)) ?? found, found);
  const latestTimeline = latest && { ...latest, raise: laterThan };
  return (await Primary.of(url, { schema, latestTimeline, isReadOnly: true })).url;
}

async function readClockDifference(sql: SQL, now: () => number): Promise<number> {
  const before = now();
  const [clock] = await sql<
    [{ ms: number }]
  >`SELECT extract(epoch FROM clock_timestamp())::float8 * 1000 AS ms`;
  return Math.round(clock.ms - (before + now()) / 2);
}

interface HostClock {
  /** The host and the port. */
  readonly host: string;
  /** The clock of the server minus that of this machine, accurate to the duration of a query. */
  readonly differenceMs: number;
}

/** Compares the clocks of all servers in the URL that respond, standbys included: any of them may be promoted. */
export async function compareClocks(url: string, now: () => number): Promise<readonly HostClock[]> {
  const compared = hostUrls(url).map(async (each) => {
    const read = (sql: SQL) => readClockDifference(sql, now);
    const differenceMs = await withConnection(each, { acceptsStandby: true }, read).catch(() => undefined);
    return differenceMs === undefined ? [] : [{ host: new URL(each).host, differenceMs }];
  });
  return (await Promise.all(compared)).flat();
}

/** Connects and reads the facts about a server, without changing anything. */
export async function inspectPostgres(url: string, schema: string): Promise<PostgresState> {
  await using sql = connect(url, { schema, acceptsStandby: true, lockMs: 1_000 });
  const [server] = await sql<[ServerState]>`
    SELECT current_setting('server_version_num')::int / 10000 AS version,
      current_setting('server_encoding') AS encoding,
      pg_is_in_recovery() AS "isStandby",
      current_setting('fsync') = 'on' AND current_setting('synchronous_commit') <> 'off' AS "isDurable",
      current_setting('max_connections')::int AS "maxConnections",
      current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int
        - (SELECT count(*)::int FROM pg_stat_activity WHERE backend_type = 'client backend') AS "freeConnections",
      has_database_privilege(current_database(), 'CREATE') AS "canCreateSchema"`;
  const hasTables = await tableExists(sql, `${schema}.schema_migrations`);
  const hasServers = await tableExists(sql, `${schema}.servers`);
  const [{ servers }] = hasServers
    ? await sql<[{ servers: number }]>`
        SELECT count(*)::int AS servers FROM servers
        WHERE reported_at > extract(epoch FROM clock_timestamp()) * 1000 - ${GONE_AFTER_MS}`
    : [{ servers: 0 }];
  const hasSettings = await tableExists(sql, `${schema}.server_settings`);
  const [backup] = hasSettings
    ? await sql<{ value: string }[]>`SELECT value FROM server_settings WHERE name = ${LAST_BACKUP}`
    : [];
  return {
    ...server,
    replication: await readReplication(sql),
    servers,
    lastBackupAt: backup && Number.parseInt(backup.value, 10),
    oldestVersion: OLDEST_VERSION,
    schema: hasTables ? await readSchema(sql) : schemaState([], POSTGRES_MIGRATIONS),
  };
}
