import type { SQL } from "bun";
import type { KeyStore, Store } from "../../domain/ports.ts";
import { connect, addressOf } from "./connect.ts";
import { QueryTimeout } from "./query-timeout.ts";
import { Pools, type PoolsOptions } from "./pools.ts";
import { PostgresKeyStore } from "./api-keys.ts";
import { migrate } from "./migrate.ts";
import { MIGRATIONS } from "./migrations.ts";
import { PostgresStore } from "./postgres-store.ts";

export interface OpenedStore {
  readonly store: Store;
  readonly keys: KeyStore;
  /** Finishes what was accepted, then lets go of the engine. */
  close(): Promise<void>;
}

/** Older ones are no longer looked after. */
const OLDEST_VERSION = 13;
/** Instances that start at once wait for the one that migrates. */
const OPEN_WITHIN_MS = 60_000;
const OPEN_OPTIONS = {
  max: 1,
  connectMs: 5_000,
  statementMs: OPEN_WITHIN_MS,
  lockMs: OPEN_WITHIN_MS,
  idleInTransactionMs: 10_000,
};

/** Connects, brings the tables up to date, and gives the two stores that share the connections. */
export async function openPostgres(url: string, options: PoolsOptions = {}): Promise<OpenedStore> {
  const sql = connect(url, { ...OPEN_OPTIONS, schema: options.schema });
  const deadline = new QueryTimeout(OPEN_WITHIN_MS);
  try {
    await deadline.race(prepare(sql, options.schema));
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new Error(`cannot open the database ${addressOf(url)}: ${reason}`, { cause: error });
  } finally {
    deadline.end();
    await sql.close({ timeout: 0 });
  }
  const pools = new Pools(url, options);
  const store = new PostgresStore(pools);
  return { store, keys: new PostgresKeyStore(pools), close: () => store.close() };
}

async function prepare(sql: SQL, schema: string | undefined): Promise<void> {
  await check(sql);
  await migrate(sql, MIGRATIONS, schema);
}

async function check(sql: SQL): Promise<void> {
  const [server] = await sql<[{ version: number; encoding: string }]>`
    SELECT current_setting('server_version_num')::int / 10000 AS version,
      current_setting('server_encoding') AS encoding`;
  if (server.version < OLDEST_VERSION) {
    throw new Error(`PostgreSQL ${OLDEST_VERSION} or newer is needed, and this is ${server.version}`);
  }
  if (server.encoding !== "UTF8") {
    throw new Error(`its encoding must be UTF8, and is ${server.encoding}`);
  }
}
