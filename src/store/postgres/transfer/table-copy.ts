import type { SQL } from "bun";
import type { NewAuditEntry } from "../../../domain/audit.ts";
import {
  canonicalJson,
  type Counters,
  jsonColumns,
  KEY_REVISION,
  type Row,
  type Table,
  type TableReader,
  TABLES,
  TABLES_WITH_IDS,
  type TableWriter,
} from "../../tables.ts";
import { applicationName, connect, COPY_LOCK, LOCK_SPACE } from "../connection.ts";
import { insertAudit } from "../audit.ts";
import { openPostgres } from "../store.ts";
import { FILL_SUMS } from "../usage-history.ts";

export interface PostgresTablesOptions {
  readonly url: string;
  /** The schema of the environment. */
  readonly schema: string;
}

/** No statement of a copy has a limit: one may read or index a table of any size. */
const CONNECT_OPTIONS = {
  maxConnections: 1,
  connectMs: 5_000,
  statementMs: 0,
  lockMs: 0,
  idleInTransactionMs: 0,
};
const ROWS_PER_BATCH = 2_000;

/** Whether the environment has tables there. */
export async function postgresTablesExist({ url, schema }: PostgresTablesOptions): Promise<boolean> {
  await using sql = connect(url, { ...CONNECT_OPTIONS, schema });
  const [found] = await sql<[{ exists: boolean }]>`
    SELECT to_regclass(${`${schema}.schema_migrations`}) IS NOT NULL AS exists`;
  return found.exists;
}

/** The session of a process that was killed ends when its last statement does. */
const SESSION_END_MS = 3_000;
const POLL_MS = 50;

/** The sessions of servers and commands that use the environment. */
export async function postgresSessions({ url, schema }: PostgresTablesOptions): Promise<number> {
  await using sql = connect(url, { ...CONNECT_OPTIONS, schema });
  return await polled(0, async () => {
    const [found] = await sql<[{ count: number }]>`
      SELECT count(*)::int AS count FROM pg_stat_activity
      WHERE application_name = ${applicationName(schema)} AND datname = current_database() AND pid <> pg_backend_pid()`;
    return found.count;
  });
}

/** Repeats `read` for some time, until it returns the wanted value. Returns the last value. */
async function polled<T>(wanted: T, read: () => Promise<T>): Promise<T> {
  const deadline = performance.now() + SESSION_END_MS;
  for (;;) {
    const value = await read();
    if (value === wanted || performance.now() > deadline) return value;
    await Bun.sleep(POLL_MS);
  }
}

/** Reads one snapshot of the database, whatever is written meanwhile. Migrates it first. */
export async function readPostgresTables({ url, schema }: PostgresTablesOptions): Promise<TableReader> {
  await (await openPostgres(url, { schema })).close();
  const sql = connect(url, { ...CONNECT_OPTIONS, schema });
  await sql.unsafe("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY");
  return new PostgresTableReader(sql);
}

class PostgresTableReader implements TableReader {
  constructor(private readonly sql: SQL) {}

  async count({ name }: Table): Promise<number> {
    const [found]: { count: bigint }[] = await this.sql.unsafe(`SELECT count(*) AS count FROM ${name}`);
    return Number(found?.count ?? 0);
  }

  async *rows(table: Table): AsyncGenerator<readonly Row[]> {
    const columns = Object.keys(table.columns).map((column) => `${column}::text`);
    const json = jsonColumns(table);
    await this.sql.unsafe(`DECLARE copied NO SCROLL CURSOR FOR
      SELECT ${columns.join(", ")} FROM ${table.name} ORDER BY ${table.order.postgres}`);
    for (;;) {
      const rows: (string | null)[][] = await this.sql.unsafe(`FETCH ${ROWS_PER_BATCH} FROM copied`).values();
      for (const row of rows) {
        for (const position of json) row[position] = canonicalJson(row[position] ?? "null");
      }
      if (rows.length > 0) yield rows;
      if (rows.length < ROWS_PER_BATCH) break;
    }
    await this.sql.unsafe("CLOSE copied");
  }

  /** A sequence that has assigned nothing yet has its first number as the last one. */
  async counters(): Promise<Counters> {
    const selects = TABLES_WITH_IDS.map(
      (table) =>
        `SELECT '${table}' AS name, CASE WHEN is_called THEN last_value ELSE 0 END AS value FROM ${table}_id_seq`,
    );
    const sql = [...selects, `SELECT '${KEY_REVISION}', revision FROM key_revision`].join(" UNION ALL ");
    const rows: { name: string; value: bigint | number }[] = await this.sql.unsafe(sql);
    return Object.fromEntries(rows.map(({ name, value }) => [name, BigInt(value)]));
  }

  async close(): Promise<void> {
    await this.sql.close({ timeout: 0 });
  }
}

const CREATE_PROGRESS = [
  "CREATE TABLE IF NOT EXISTS copy_progress (table_name text PRIMARY KEY, inserted bigint NOT NULL)",
  "CREATE TABLE IF NOT EXISTS copy_source (source text NOT NULL)",
];

/**
 * Writes a schema of another name, and renames it when it is published. An interrupted copy of the same source goes on;
 * that of another source is discarded.
 */
export async function writePostgresTables(
  { url, schema }: PostgresTablesOptions,
  source: string,
): Promise<TableWriter> {
  const unpublished = `${schema}_copy`;
  const sql = connect(url, { ...CONNECT_OPTIONS, schema: unpublished });
  try {
    await lock(sql);
    const found = await readSource(sql, unpublished);
    if (found !== source) await createTables({ sql, url, unpublished, source });
    return new PostgresTableWriter(sql, { url, schema, unpublished, source });
  } catch (error) {
    await sql.close({ timeout: 0 });
    throw error;
  }
}

/** Held until the session ends. */
async function lock(sql: SQL): Promise<void> {
  const isLocked = await polled(true, async () => {
    const [{ locked }] = await sql<[{ locked: boolean }]>`
      SELECT pg_try_advisory_lock(${LOCK_SPACE}, ${COPY_LOCK}) AS locked`;
    return locked;
  });
  if (!isLocked) throw new Error("another petstore copy is writing to this database");
}

async function readSource(sql: SQL, schema: string): Promise<string | undefined> {
  const [table] = await sql<[{ exists: boolean }]>`
    SELECT to_regclass(${`${schema}.copy_source`}) IS NOT NULL AS exists`;
  if (!table.exists) return undefined;
  const [row] = await sql<{ source: string }[]>`SELECT source FROM copy_source`;
  return row?.source;
}

async function createTables(options: {
  readonly sql: SQL;
  readonly url: string;
  readonly unpublished: string;
  readonly source: string;
}): Promise<void> {
  const { sql, url, unpublished, source } = options;
  await sql`DROP SCHEMA IF EXISTS ${sql(unpublished)} CASCADE`;
  await (await openPostgres(url, { schema: unpublished })).close();
  for (const statement of CREATE_PROGRESS) await sql.unsafe(statement);
  await sql`INSERT INTO copy_source (source) VALUES (${source})`;
}

class PostgresTableWriter implements TableWriter {
  readonly source: string;

  constructor(
    private readonly sql: SQL,
    private readonly target: PostgresTablesOptions & {
      readonly unpublished: string;
      readonly source: string;
    },
  ) {
    this.source = target.source;
  }

  async insertedRows({ name }: Table): Promise<number> {
    const [row] = await this.sql<{ inserted: bigint }[]>`
      SELECT inserted FROM copy_progress WHERE table_name = ${name}`;
    return Number(row?.inserted ?? 0);
  }

  async insert(table: Table, rows: readonly Row[]): Promise<void> {
    const given = JSON.stringify(rows);
    await this.sql.begin(async (tx) => {
      await tx.unsafe(insertStatement(table), [given]);
      await tx`INSERT INTO copy_progress AS stored (table_name, inserted) VALUES (${table.name}, ${rows.length})
        ON CONFLICT (table_name) DO UPDATE SET inserted = stored.inserted + excluded.inserted`;
    });
  }

  async setCounters(counters: Counters): Promise<void> {
    for (const table of TABLES_WITH_IDS) {
      const lastId = counters[table] ?? 0n;
      // A sequence begins at 1; the last argument says whether that number was assigned.
      await this
        .sql`SELECT setval(${`${table}_id_seq`}::regclass, ${lastId > 0n ? lastId : 1n}::int8, ${lastId > 0n})`;
    }
    await this.sql`UPDATE key_revision SET revision = ${counters[KEY_REVISION] ?? 0n}`;
  }

  async addSums(): Promise<void> {
    await this.sql.begin(async (tx) => {
      await tx.unsafe("DELETE FROM usage_sums");
      for (const statement of FILL_SUMS) await tx.unsafe(statement);
    });
  }

  read(): Promise<TableReader> {
    const { url, unpublished } = this.target;
    return readPostgresTables({ url, schema: unpublished });
  }

  /** A schema that an administrator has created for the environment is empty, or the rename fails. */
  async publish(entry: NewAuditEntry): Promise<void> {
    const { schema, unpublished } = this.target;
    for (const { name } of TABLES) await this.sql.unsafe(`ANALYZE ${name}`);
    await this.sql.begin(async (tx) => {
      await insertAudit(tx, entry);
      await tx.unsafe("DROP TABLE copy_progress, copy_source");
      await tx`DROP SCHEMA IF EXISTS ${tx(schema)}`;
      await tx`ALTER SCHEMA ${tx(unpublished)} RENAME TO ${tx(schema)}`;
    });
  }

  async close(): Promise<void> {
    await this.sql.close({ timeout: 0 });
  }
}

/** Its only parameter is a JSON array of rows, each an array of texts: nulls and any number of rows fit into it. */
function insertStatement({ name, columns, assignsIds }: Table): string {
  const values = Object.values(columns).map(
    (type, position) => `(given.row ->> ${position})::${CASTS[type]}`,
  );
  return `INSERT INTO ${name} (${Object.keys(columns).join(", ")}) ${assignsIds ? "OVERRIDING SYSTEM VALUE" : ""}
    SELECT ${values.join(", ")} FROM json_array_elements($1::text::json) AS given (row)`;
}

const CASTS = { integer: "int8", text: "text", json: "jsonb" } as const;
