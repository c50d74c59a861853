import type { SQL } from "bun";
import type { NewAuditEntry } from "../../domain/audit.ts";
import { addAudit } from "../audit.ts";
import {
  canonicalJson,
  type Counters,
  CREATE_COPY_PROGRESS,
  jsonColumns,
  KEY_REVISION,
  type NewRow,
  type NewTables,
  type Row,
  type RowQuery,
  rowsOf,
  type SharedTables,
  type Table,
  type TableReader,
  TABLES,
  TABLES_WITH_IDS,
  type TableStore,
  type TableTransaction,
  type TableWriter,
} from "../tables.ts";
import { applicationName, connect, COPY_LOCK, LOCK_SPACE, nextIdLock, toUnavailable } from "./connection.ts";
import { Primary } from "./primary.ts";
import { runAll } from "./statements.ts";
import { migratePostgres } from "./store.ts";
import { FILL_SUMS } from "./usage-history.ts";
import { scheduler } from "../../event-loop.ts";

interface PostgresTablesOptions {
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
  // The reader of an exported pipe may be slow, and a large copy leaves its source for hours.
  idleInTransactionMs: 24 * 3_600_000,
};

/** Transactions beside servers wait longer than a request of a client does. */
const SHARED_TIMEOUT_MS = 30_000;
const SHARED_OPTIONS = {
  maxConnections: 1,
  connectMs: SHARED_TIMEOUT_MS,
  statementMs: SHARED_TIMEOUT_MS,
  lockMs: SHARED_TIMEOUT_MS,
  idleInTransactionMs: SHARED_TIMEOUT_MS,
  waitsForDisk: false,
} as const;

/** The tables of an environment, which is a schema. */
export function postgresTables({ url: anyServer, schema }: PostgresTablesOptions): TableStore {
  const onPrimary = async () => ({ url: (await Primary.of(anyServer)).url, schema });
  return {
    exists: async () => tablesExist(await onPrimary()),
    read: async () => openReader(await onPrimary()),
    async share() {
      const { url } = await onPrimary();
      await migratePostgres(url, schema);
      return new PostgresSharedTables(connect(url, { ...SHARED_OPTIONS, schema }));
    },
    create: async (source) => createTables(await onPrimary(), source),
  };
}

async function tablesExist({ url, schema }: PostgresTablesOptions): Promise<boolean> {
  await using sql = connect(url, { ...CONNECT_OPTIONS, schema });
  const [found] = await sql<[{ exists: boolean }]>`
    SELECT to_regclass(${`${schema}.schema_migrations`}) IS NOT NULL AS exists`;
  return found.exists;
}

/** The session of a process that was killed ends when its last statement does. */
const SESSION_END_MS = 3_000;
const POLL_MS = 50;

/** The sessions of servers and commands that use the environment. */
export async function postgresSessions({ url: anyServer, schema }: PostgresTablesOptions): Promise<number> {
  const { url } = await Primary.of(anyServer);
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
  const deadline = scheduler.now() + SESSION_END_MS;
  for (;;) {
    const value = await read();
    if (value === wanted || scheduler.now() > deadline) return value;
    await scheduler.sleep(POLL_MS);
  }
}

const ROWS_PER_BATCH = 2_000;

async function openReader({ url, schema }: PostgresTablesOptions): Promise<TableReader> {
  await migratePostgres(url, schema);
  const sql = connect(url, { ...CONNECT_OPTIONS, schema });
  // Each query sees what was committed before the first one.
  await sql.unsafe("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY");
  return new PostgresTableReader(sql);
}

class PostgresTableReader implements TableReader {
  constructor(private readonly sql: SQL) {}

  async count(table: Table): Promise<number> {
    const [found]: { count: bigint }[] = await this.sql.unsafe(
      `SELECT count(*) AS count FROM ${rowsOf(table)}`,
    );
    return Number(found?.count ?? 0);
  }

  async *rows(table: Table): AsyncGenerator<readonly Row[]> {
    const json = jsonColumns(table);
    const cursor = `rows_of_${table.name}`;
    try {
      await this.sql.unsafe(`DECLARE ${cursor} NO SCROLL CURSOR FOR
        SELECT ${selected(table)} FROM ${rowsOf(table)} ORDER BY ${table.order.postgres}`);
      for (;;) {
        const rows: (string | null)[][] = await this.sql
          .unsafe(`FETCH ${ROWS_PER_BATCH} FROM ${cursor}`)
          .values();
        for (const row of rows) {
          for (const position of json) row[position] = canonicalJson(row[position] ?? "null");
        }
        if (rows.length > 0) yield rows;
        if (rows.length < ROWS_PER_BATCH) break;
      }
      await this.sql.unsafe(`CLOSE ${cursor}`);
    } catch (error) {
      throw toUnavailable(error);
    }
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

/** Every column as text. */
function selected({ columns }: Table): string {
  return Object.keys(columns)
    .map((column) => `${column}::text`)
    .join(", ");
}

/** How arrays of a column are sent; JSON is converted later. */
const ARRAYS = { integer: "int8[]", text: "text[]", json: "text[]" } as const;

class PostgresTransaction implements TableTransaction {
  constructor(private readonly sql: SQL) {}

  /** Locks in the order of the identifiers, so that no two transactions wait for each other. */
  async find(table: Table, { by, values, where, isLocked = false }: RowQuery): Promise<readonly Row[]> {
    if (values.length === 0) return [];
    const rows: Row[] = await this.sql
      .unsafe(
        `SELECT ${selected(table)} FROM ${table.name}
         WHERE ${by} = ANY ($1::${ARRAYS[table.columns[by] ?? "text"]})${where === undefined ? "" : ` AND ${where}`}
         ORDER BY ${table.order.postgres}${isLocked ? " FOR NO KEY UPDATE" : ""}`,
        [values],
      )
      .values();
    return rows;
  }

  insert(table: Table, rows: readonly NewRow[]): Promise<void> {
    return this.#write(insertInto(table, Object.keys(table.columns)), rows);
  }

  append(table: Table, rows: readonly NewRow[]): Promise<void> {
    const columns = Object.keys(table.columns).slice(1);
    return this.#write(
      `WITH ${nextIdLock(table.name)} ${insertInto(table, columns, "next_id_lock, ")}`,
      rows,
    );
  }

  async put(table: Table, rows: readonly NewRow[]): Promise<void> {
    if (rows.length === 0) return;
    const [key, ...others] = Object.keys(table.columns);
    const set = others.map((column) => `${column} = excluded.${column}`).join(", ");
    const insert = insertInto(table, Object.keys(table.columns));
    await this.#write(`${insert} ON CONFLICT (${key}) DO UPDATE SET ${set}`, rows);
    if (!table.assignsIds) return;
    // The next identifier follows the highest that was kept.
    const highest = rows.reduce((most, [id]) => (BigInt(id ?? 0) > most ? BigInt(id ?? 0) : most), 0n);
    const sequence = `${table.name}_id_seq`;
    const last = `greatest($1::int8, (SELECT last_value FROM ${sequence}))`;
    await this.sql.unsafe(`SELECT setval('${sequence}', ${last})`, [highest]);
  }

  async lockIds({ name }: Table): Promise<void> {
    await this.sql.unsafe(`WITH ${nextIdLock(name)} SELECT FROM next_id_lock`);
  }

  addAudit(entry: NewAuditEntry): Promise<void> {
    return runAll(this.sql, () => addAudit(entry));
  }

  async #write(statement: string, rows: readonly NewRow[]): Promise<void> {
    const [first] = rows;
    if (first === undefined) return;
    await this.sql.unsafe(
      statement,
      first.map((_, position) => rows.map((row) => row[position] ?? null)),
    );
  }
}

/** Its parameters are an array for each column. Rows are inserted, and get their identifiers, in their order. */
function insertInto({ name, columns, assignsIds }: Table, names: readonly string[], from = ""): string {
  const typeOf = (column: string) => columns[column] ?? "text";
  const arrays = names.map((column, i) => `$${i + 1}::${ARRAYS[typeOf(column)]}`);
  const values = names.map((column) =>
    typeOf(column) === "json" ? `given.${column}::jsonb` : `given.${column}`,
  );
  return `INSERT INTO ${name} (${names.join(", ")}) ${assignsIds && from === "" ? "OVERRIDING SYSTEM VALUE" : ""}
    SELECT ${values.join(", ")}
    FROM ${from}unnest(${arrays.join(", ")}) WITH ORDINALITY AS given (${names.join(", ")}, given_order)
    ORDER BY given_order`;
}

class PostgresTableWriter implements TableWriter {
  constructor(protected readonly sql: SQL) {}

  async transaction<T>(work: (tx: TableTransaction) => Promise<T>): Promise<T> {
    try {
      // `begin` returns what `work` returns; its type allows for arrays of queries too.
      return (await this.sql.begin((tx) => work(new PostgresTransaction(tx)))) as T;
    } catch (error) {
      throw toUnavailable(error);
    }
  }

  async close(): Promise<void> {
    await this.sql.close({ timeout: 0 });
  }
}

class PostgresSharedTables extends PostgresTableWriter implements SharedTables {
  /** Creates of clients wait while they are stored. */
  readonly rowsPerTransaction = 1_000;

  async makeDurable(): Promise<void> {
    await this.sql.unsafe("SET synchronous_commit = on");
  }
}

/** A schema of another name, which is renamed when it is published. */
async function createTables(options: PostgresTablesOptions, source: string): Promise<NewTables> {
  const { url, schema } = options;
  const unpublished = `${schema}_copy`;
  const sql = connect(url, { ...CONNECT_OPTIONS, schema: unpublished });
  try {
    await lock(sql);
    if ((await readSource(sql, unpublished)) !== source) {
      await sql`DROP SCHEMA IF EXISTS ${sql(unpublished)} CASCADE`;
      await migratePostgres(url, unpublished);
      for (const statement of CREATE_COPY_PROGRESS) await sql.unsafe(statement);
      await sql`INSERT INTO copy_source (source) VALUES (${source})`;
    }
    return new PostgresNewTables(sql, { url, schema, unpublished });
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

interface CopyTarget {
  readonly url: string;
  readonly schema: string;
  readonly unpublished: string;
}

class PostgresNewTables extends PostgresTableWriter implements NewTables {
  constructor(
    sql: SQL,
    private readonly target: CopyTarget,
  ) {
    super(sql);
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
    return openReader({ url, schema: unpublished });
  }

  /** A schema that an administrator has created for the environment is empty, or the rename fails. */
  async publish(entry: NewAuditEntry): Promise<void> {
    const { schema, unpublished } = this.target;
    for (const { name } of TABLES) await this.sql.unsafe(`ANALYZE ${name}`);
    await this.sql.begin(async (tx) => {
      await runAll(tx, () => addAudit(entry));
      await tx.unsafe("DROP TABLE copy_progress, copy_source");
      await tx`DROP SCHEMA IF EXISTS ${tx(schema)}`;
      await tx`ALTER SCHEMA ${tx(unpublished)} RENAME TO ${tx(schema)}`;
    });
  }
}
