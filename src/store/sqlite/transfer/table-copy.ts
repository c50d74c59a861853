import type { Statement } from "bun:sqlite";
import { existsSync, rmSync } from "node:fs";
import type { NewAuditEntry } from "../../../domain/audit.ts";
import { giveToDirectoryOwner, renameDurably, syncToDisk } from "../../../archive/durable-files.ts";
import {
  canonicalJson,
  type Counters,
  jsonColumns,
  KEY_REVISION,
  type Row,
  type Table,
  type TableReader,
  TABLES_WITH_IDS,
  type TableWriter,
} from "../../tables.ts";
import { AuditEntries } from "../audit.ts";
import type { Connection } from "../connection.ts";
import { openDatabase } from "../database.ts";
import { MIGRATIONS } from "../migrations.ts";
import { packUsage } from "../usage-history.ts";

const OPTIONS = {
  migrations: MIGRATIONS,
  synchronous: "NORMAL",
  cacheKiB: 16 * 1024,
  busyTimeoutMs: 5_000,
} as const;
const ROWS_PER_BATCH = 2_000;

/** Reads one snapshot of the database, whatever is written meanwhile. */
export function readSqliteTables(path: string): TableReader {
  const connection = openDatabase(path, OPTIONS);
  const observer = openDatabase(path, OPTIONS);
  const version = dataVersion(observer);
  connection.run("BEGIN");
  return new SqliteTableReader(connection, observer, version);
}

/** Changes when another connection commits. */
function dataVersion(connection: Connection): unknown {
  return connection.value("PRAGMA data_version");
}

class SqliteTableReader implements TableReader {
  constructor(
    private readonly connection: Connection,
    /** Outside of the transaction. */
    private readonly observer: Connection,
    private readonly version: unknown,
  ) {}

  hasChanged(): boolean {
    return dataVersion(this.observer) !== this.version;
  }

  async count({ name }: Table): Promise<number> {
    return Number(this.connection.value(`SELECT count(*) FROM ${name}`));
  }

  async *rows(table: Table): AsyncGenerator<readonly Row[]> {
    const columns = Object.keys(table.columns).join(", ");
    using statement = this.connection.prepare<Record<string, string | bigint | null>, []>(
      `SELECT ${columns} FROM ${table.name} ORDER BY ${table.order.sqlite}`,
    );
    const json = jsonColumns(table);
    let batch: Row[] = [];
    for (const values of statement.iterate()) {
      const row = Object.values(values).map((value) => (typeof value === "bigint" ? String(value) : value));
      for (const position of json) row[position] = canonicalJson(row[position] ?? "null");
      if (batch.push(row) < ROWS_PER_BATCH) continue;
      yield batch;
      batch = [];
    }
    if (batch.length > 0) yield batch;
  }

  async counters(): Promise<Counters> {
    const lastId = (table: string) =>
      this.connection.value("SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = ?", table);
    const ids = TABLES_WITH_IDS.map((table) => [table, integer(lastId(table))] as const);
    const revision = integer(this.connection.value("SELECT revision FROM key_revision"));
    return Object.fromEntries([...ids, [KEY_REVISION, revision]]);
  }

  async close(): Promise<void> {
    this.observer.close();
    this.connection.close();
  }
}

function integer(value: unknown): bigint {
  return typeof value === "bigint" ? value : 0n;
}

const CREATE_PROGRESS = `
  CREATE TABLE IF NOT EXISTS copy_progress (table_name TEXT PRIMARY KEY, inserted INTEGER NOT NULL) STRICT;
  CREATE TABLE IF NOT EXISTS copy_source (source TEXT NOT NULL) STRICT;`;

/**
 * Writes a new database beside `path`, which must not exist, and renames it when it is published. An interrupted copy
 * of the same source goes on; that of another source is discarded.
 */
export function writeSqliteTables(path: string, source: string): TableWriter {
  const unpublished = `${path}.copy`;
  const found = existsSync(unpublished) ? new SqliteTableWriter(unpublished, path) : undefined;
  if (found?.source === source) return found;
  found?.discard();
  return new SqliteTableWriter(unpublished, path).begin(source);
}

class SqliteTableWriter implements TableWriter {
  readonly #connection: Connection;
  readonly #inserts = new Map<string, Statement<unknown, (string | bigint | null)[]>>();
  readonly #count: Statement<unknown, [string, number]>;

  constructor(
    private readonly unpublished: string,
    private readonly path: string,
  ) {
    this.#connection = openDatabase(unpublished, OPTIONS);
    this.#connection.run(CREATE_PROGRESS);
    this.#count = this.#connection.prepare(`INSERT INTO copy_progress (table_name, inserted) VALUES (?, ?)
      ON CONFLICT (table_name) DO UPDATE SET inserted = inserted + excluded.inserted`);
  }

  begin(source: string): this {
    this.#connection.value("INSERT INTO copy_source (source) VALUES (?)", source);
    return this;
  }

  discard(): void {
    this.#connection.close();
    for (const suffix of ["", "-wal", "-shm"]) rmSync(this.unpublished + suffix, { force: true });
  }

  get source(): string | undefined {
    const source = this.#connection.value("SELECT source FROM copy_source");
    return typeof source === "string" ? source : undefined;
  }

  async insertedRows({ name }: Table): Promise<number> {
    return Number(
      this.#connection.value("SELECT inserted FROM copy_progress WHERE table_name = ?", name) ?? 0,
    );
  }

  async insert(table: Table, rows: readonly Row[]): Promise<void> {
    const types = Object.values(table.columns);
    const insert = this.#insertInto(table);
    this.#connection.transaction(() => {
      for (const row of rows) {
        insert.run(...row.map((text, i) => (text !== null && types[i] === "integer" ? BigInt(text) : text)));
      }
      this.#count.run(table.name, rows.length);
    });
  }

  async setCounters(counters: Counters): Promise<void> {
    this.#connection.transaction(() => {
      for (const table of TABLES_WITH_IDS) {
        this.#connection.value("DELETE FROM sqlite_sequence WHERE name = ?", table);
        const lastId = counters[table] ?? 0n;
        this.#connection.value("INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)", table, lastId);
      }
      this.#connection.value("UPDATE key_revision SET revision = ?", counters[KEY_REVISION] ?? 0n);
    });
  }

  async addSums(): Promise<void> {
    this.#connection.transaction(() => {
      this.#connection.run("DELETE FROM usage_totals");
      packUsage(this.#connection);
    });
  }

  async read(): Promise<TableReader> {
    return readSqliteTables(this.unpublished);
  }

  /** If it is interrupted before the file has its name, the next copy starts over: this one has no source any more. */
  async publish(entry: NewAuditEntry): Promise<void> {
    this.#connection.transaction(() => {
      new AuditEntries(this.#connection).insert(entry);
      this.#connection.run("DROP TABLE copy_progress; DROP TABLE copy_source");
    });
    this.#connection.value("PRAGMA wal_checkpoint(TRUNCATE)");
    await this.close();
    syncToDisk(this.unpublished);
    renameDurably(this.unpublished, this.path);
    giveToDirectoryOwner(this.path);
  }

  async close(): Promise<void> {
    this.#connection.close();
  }

  #insertInto({ name, columns }: Table): Statement<unknown, (string | bigint | null)[]> {
    const known = this.#inserts.get(name);
    if (known) return known;
    const names = Object.keys(columns);
    const insert = this.#connection.prepare<unknown, (string | bigint | null)[]>(
      `INSERT INTO ${name} (${names.join(", ")}) VALUES (${names.map(() => "?").join(", ")})`,
    );
    this.#inserts.set(name, insert);
    return insert;
  }
}
