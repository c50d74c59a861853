import { DAY_MS } from "../../text/time-units.ts";
import type { SQL } from "bun";
import { OutcomeUnknown } from "../../api/errors.ts";
import { messageOf } from "../../runtime/message-of.ts";
import { rowsOf, type Statements, type Steps } from "../sql/steps.ts";
import { canonicalRowOf, selectCount, insertRows, selectRows } from "../sql/table-rows.ts";
import {
  type Counters,
  type KeyQuotas,
  KEY_REVISION,
  type NewTables,
  type SharedTables,
  type TableReader,
  type TableStore,
} from "../sql/table-store.ts";
import { EMPTY_TABLES, type NewRow, type Row, type Table, TABLES, TABLES_WITH_IDS } from "../sql/tables.ts";
import { LAST_BACKUP } from "../../domain/stored-values.ts";
import { withTimeout } from "../../runtime/timeout.ts";
import { SAVE_VALUE } from "../stored-values.ts";
import { connect, withConnection } from "./connection.ts";
import {
  type EnvironmentLock,
  lockEnvironment,
  lockTables,
  rejectSessions,
  SESSION_END_MS,
  shareEnvironment,
  unpublishedSchema,
} from "./environment-lock.ts";
import { isFromServer, postgresUnavailable } from "./errors.ts";
import { NEW_TABLES_LOCK, takeLock } from "./locks.ts";
import { putQuotas, readAllQuotas, type QuotasAndTime } from "./quota-rows.ts";
import { migratePostgres, readSchema, tableExists } from "./migrate.ts";
import { Primary, type PrimaryOptions } from "./primary.ts";
import { POSTGRES_DIALECT, runAll } from "./dialect.ts";

interface PostgresTablesOptions extends PrimaryOptions {
  readonly url: string;
  /** The schema of the environment. */
  readonly schema: string;
  /** Whether tables of a newer release are read although this one cannot run on them. */
  readonly readsNewer?: true;
}

/** The longest statements sort a table, count its rows or wait for a standby. */
const STATEMENT_MS = 120_000;
const CONNECT_OPTIONS = {
  statementMs: STATEMENT_MS,
  lockMs: STATEMENT_MS,
  // The reader of an exported pipe may be slow, and a large copy may leave its source idle for hours.
  idleInTransactionMs: DAY_MS,
};

/** A server that was cut off ends no statement, so this process gives up as well. */
const inTime = <T>(statement: Promise<T>): Promise<T> => withTimeout(STATEMENT_MS + 5_000, statement);

/** How long a transaction waits for servers, which is longer than a client's request does. */
const SHARED_TIMEOUT_MS = 30_000;
const SHARED_OPTIONS = {
  connectMs: SHARED_TIMEOUT_MS,
  statementMs: SHARED_TIMEOUT_MS,
  lockMs: SHARED_TIMEOUT_MS,
  idleInTransactionMs: SHARED_TIMEOUT_MS,
  waitsForDisk: false,
} as const;

interface OnPrimary {
  readonly url: string;
  readonly schema: string;
  readonly primary: Primary;
}

export interface NewPostgresTables extends NewTables {
  /** Adds the quotas of keys. */
  putQuotas(quotas: KeyQuotas): Promise<void>;
}

/** Tables whose schema has the quotas of keys, too. */
export interface PostgresTables extends TableStore {
  read(): Promise<PostgresTableReader>;
  create(): Promise<NewPostgresTables>;
}

/** The tables of an environment, which are in a schema of their own. */
export function postgresTables({
  url: anyServer,
  schema,
  readsNewer,
  ...options
}: PostgresTablesOptions): PostgresTables {
  const onPrimary = async (): Promise<OnPrimary> => {
    const primary = await Primary.of(anyServer, { ...options, schema });
    return { url: primary.url, schema, primary };
  };
  const query = async <T>(work: (sql: SQL) => Promise<T>) =>
    withConnection((await onPrimary()).url, { schema }, work);
  return {
    exists: () => query((sql) => tableExists(sql, `${schema}.schema_migrations`)),
    schema: () => query((sql) => readSchema(sql)),
    read: async () => openReader(await onPrimary(), readsNewer),
    async share() {
      const { url, primary } = await onPrimary();
      await using opened = new AsyncDisposableStack();
      opened.use(await shareEnvironment(primary, schema));
      await migratePostgres(url, { schema, use: "create" });
      return new PostgresSharedTables(connect(url, { ...SHARED_OPTIONS, schema }), opened.move());
    },
    create: async () => createTables(await onPrimary()),
    recordBackup: (at) =>
      query((sql) =>
        sql.begin(async (tx) => {
          await tx`SET LOCAL synchronous_commit = local`;
          await runAll(tx, () => rowsOf(SAVE_VALUE, LAST_BACKUP, String(at)));
        }),
      ),
  };
}

/** Keeps all other processes from the environment. Throws EnvironmentInUse if there are some. */
export async function lockPostgres(options: PostgresTablesOptions): Promise<EnvironmentLock> {
  const { url } = await Primary.of(options.url, options);
  return lockEnvironment(url, options.schema);
}

const ROWS_PER_BATCH = 2_000;

async function openReader(
  { url, schema, primary }: OnPrimary,
  readsNewer: boolean = false,
): Promise<PostgresTableReader> {
  if (!readsNewer) await migratePostgres(url, { schema, use: "existing" });
  const sql = connect(url, { ...CONNECT_OPTIONS, schema });
  // Each query sees what was committed before the first one.
  await inTime(sql.unsafe("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"));
  return new PostgresTableReader(sql, primary);
}

export class PostgresTableReader implements TableReader {
  constructor(
    private readonly sql: SQL,
    private readonly primary: Primary,
  ) {}

  confirm(): Promise<void> {
    return this.primary.confirm();
  }

  async count(table: Table): Promise<number> {
    const [found]: { count: bigint }[] = await inTime(this.sql.unsafe(selectCount(table)));
    return Number(found?.count ?? 0);
  }

  async *rows(table: Table): AsyncGenerator<readonly Row[]> {
    const cursor = `rows_of_${table.name}`;
    try {
      const select = selectRows(table, POSTGRES_DIALECT);
      await inTime(this.sql.unsafe(`DECLARE ${cursor} NO SCROLL CURSOR FOR ${select}`));
      for (;;) {
        const fetch = this.sql.unsafe(`FETCH ${ROWS_PER_BATCH} FROM ${cursor}`);
        const rows: (string | null)[][] = await inTime(fetch.values());
        if (rows.length > 0) yield rows.map(canonicalRowOf(table));
        if (rows.length < ROWS_PER_BATCH) break;
      }
      await inTime(this.sql.unsafe(`CLOSE ${cursor}`));
    } catch (error) {
      throw postgresUnavailable(error);
    }
  }

  /** Reads the counters. A sequence that has assigned nothing yet already has its first number as `last_value`. */
  async counters(): Promise<Counters> {
    const selects = TABLES_WITH_IDS.map(
      (table) =>
        `SELECT '${table}' AS name, CASE WHEN is_called THEN last_value ELSE 0 END AS value FROM ${table}_id_seq`,
    );
    const sql = [...selects, `SELECT '${KEY_REVISION}', revision FROM key_revision`].join(" UNION ALL ");
    const rows: { name: string; value: bigint | number }[] = await inTime(this.sql.unsafe(sql));
    return Object.fromEntries(rows.map(({ name, value }) => [name, BigInt(value)]));
  }

  /** Reads the quotas of keys, and the time by which they are counted. */
  async quotas(): Promise<QuotasAndTime> {
    return inTime(readAllQuotas(this.sql));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.sql.close({ timeout: 0 });
  }
}

class PostgresSharedTables implements SharedTables {
  readonly dialect = POSTGRES_DIALECT;
  /** The creates of clients wait while these rows are stored. */
  readonly rowsPerTransaction = 1_000;

  constructor(
    private readonly sql: SQL,
    private readonly lock: AsyncDisposable,
  ) {}

  async write<T>(statements: Statements<T>): Promise<T> {
    try {
      // `begin` returns what its argument returns; its type allows for arrays of queries too.
      return (await this.sql.begin((tx) => runAll(tx, statements))) as T;
    } catch (error) {
      throw postgresUnavailable(error);
    }
  }

  /** Makes the next identifier follow the highest one that was inserted. */
  *onWrite({ name, assignsIds }: Table, rows: readonly NewRow[]): Steps<void> {
    if (!assignsIds) return;
    const highest = rows.reduce((most, [id]) => (BigInt(id ?? 0) > most ? BigInt(id ?? 0) : most), 0n);
    const sequence = `${name}_id_seq`;
    yield* rowsOf(
      `SELECT setval('${sequence}', greatest(?::int8, (SELECT last_value FROM ${sequence})))`,
      highest,
    );
  }

  async makeDurable(): Promise<void> {
    await this.sql.unsafe("SET synchronous_commit = on");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.sql.close({ timeout: 0 });
    await this.lock[Symbol.asyncDispose]();
  }
}

/** Creates the tables in a schema of another name, which is renamed when it is published. */
async function createTables({ url, schema, primary }: OnPrimary): Promise<NewPostgresTables> {
  const unpublished = unpublishedSchema(schema);
  const sql = connect(url, { ...CONNECT_OPTIONS, schema: unpublished });
  const close = () => sql.close({ timeout: 0 });
  const dropUnpublished = () => inTime(sql`DROP SCHEMA IF EXISTS ${sql(unpublished)} CASCADE`);
  try {
    if (!(await inTime(takeLock(sql, NEW_TABLES_LOCK, SESSION_END_MS))))
      throw new Error("another petstore restore is writing to this database");
    // Nothing of this is seen before the last transaction, which waits for the disk and for standbys.
    await inTime(sql`SET synchronous_commit = off`);
    await dropUnpublished();
    await migratePostgres(url, { schema: unpublished, use: "create" });
    await inTime(sql.unsafe(EMPTY_TABLES));
  } catch (error) {
    await close();
    throw error;
  }
  return {
    async insert(table, rows) {
      const inserted = runAll(sql, () => insertRows(table, rows, { dialect: POSTGRES_DIALECT }));
      await inTime(inserted).catch((error: unknown) => {
        throw postgresUnavailable(error);
      });
    },
    putQuotas: (quotas) => inTime(putQuotas(sql, quotas)),
    async complete(counters) {
      for (const table of TABLES_WITH_IDS) {
        const lastId = counters[table] ?? 0n;
        // A sequence begins at 1; the last argument says whether that number was assigned.
        await inTime(
          sql`SELECT setval(${`${table}_id_seq`}::regclass, ${lastId > 0n ? lastId : 1n}::int8, ${lastId > 0n})`,
        );
      }
      await inTime(sql`UPDATE key_revision SET revision = ${counters[KEY_REVISION] ?? 0n}`);
    },
    read: () => openReader({ url, schema: unpublished, primary }),
    /** Replaces a schema that an administrator has created for the environment. Unless it is empty, this fails. */
    async publish({ replaced }) {
      for (const { name } of TABLES) await inTime(sql.unsafe(`ANALYZE ${name}`));
      await primary.mark(unpublished);
      // Most who use the tables are found before anything is locked.
      if (replaced !== undefined) await inTime(rejectSessions(sql, schema));
      await inTime(sql`RESET synchronous_commit`);
      let isCommitting = false;
      const published = sql.begin(async (tx) => {
        if (replaced !== undefined) await lockTables(tx, schema);
        await (replaced === undefined
          ? tx`DROP SCHEMA IF EXISTS ${tx(schema)}`
          : tx`ALTER SCHEMA ${tx(schema)} RENAME TO ${tx(replaced)}`);
        await tx`ALTER SCHEMA ${tx(unpublished)} RENAME TO ${tx(schema)}`;
        isCommitting = true;
      });
      await inTime(published).catch((error: unknown) => {
        const isUnknown = isCommitting && !isFromServer(error);
        throw isUnknown ? new OutcomeUnknown(messageOf(error), { cause: error }) : error;
      });
    },
    async [Symbol.asyncDispose]() {
      try {
        // A new session has lost the lock, and another run may have it.
        if (await inTime(takeLock(sql, NEW_TABLES_LOCK, 0))) await dropUnpublished();
      } catch {
        // The next run drops what is left.
      } finally {
        await close();
      }
    },
  };
}
