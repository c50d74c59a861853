/*
 * Compares the schema of a database that somebody may have prepared with the one that releases make. Reading and
 * writing rows runs what a schema says: generated columns, constraints, expressions of indexes, triggers. So this comes
 * before anything else is read, and only reads the schema, and then the steps.
 */

import { Database } from "bun:sqlite";
import { EarlierTables, isBeforeSteps, latestVersion, type Migration } from "../sql/migrations.ts";
import { Connection } from "./connection.ts";
import { CREATE_VERSION_TABLE, stepsOf } from "./migrate.ts";
import { QUOTA_COLUMNS } from "./quota-store.ts";

/** What a backup has in addition to the tables of a store: what it is, and the quotas of keys. */
export const BACKUP_TABLES = {
  backup: "CREATE TABLE backup (environment TEXT, created_at TEXT, version TEXT)",
  quotas: `CREATE TABLE quotas (key_id INTEGER PRIMARY KEY, ${QUOTA_COLUMNS.map((name) => `${name} INTEGER NOT NULL`).join(", ")}) STRICT`,
} as const;

/** Removes them from the copy of a backup, or from a database that is one. */
export function dropBackupTables(connection: Connection): void {
  for (const name of Object.keys(BACKUP_TABLES)) connection.exec(`DROP TABLE IF EXISTS ${name}`);
}

/** An object of a schema, by the SQL that makes it. What its row of the schema says in addition has no effect. */
interface SchemaObject {
  readonly type: string;
  readonly name: string;
  readonly sql: string;
}

/** The columns of tables, as JSON. */
type Columns = ReadonlyMap<string, string>;

/** The objects that a version has, by their words. */
type Objects = ReadonlyMap<string, SchemaObject>;

interface ReleasedSchemas {
  readonly byVersion: ReadonlyMap<number, Objects>;
  /** What a database of any version may have. */
  readonly optional: Objects;
  readonly newestColumns: Columns;
}

/**
 * Describes what no release since 1.3.0 has made, and what somebody has removed. Throws if the tables are of an earlier
 * one.
 */
export function schemaProblems(connection: Connection, migrations: readonly Migration[]): string[] {
  const { byVersion, optional, newestColumns } = releasedSchemas(migrations);
  const objects = objectsIn(connection);
  const steps = [...objects].find(([, { name }]) => name === "schema_migrations");
  const isReadable = steps !== undefined && optional.has(steps[0]);
  if (isReadable && isBeforeSteps(latestVersion(stepsOf(connection)), migrations)) throw new EarlierTables();
  const released = new Map(optional);
  for (const each of byVersion.values()) for (const [words, object] of each) released.set(words, object);
  const names = new Set([...released.values()].map(({ name }) => name));
  const describe = ({ type, name, sql }: SchemaObject) =>
    names.has(name)
      ? `its ${type} ${name} is not the one that Petstore has made`
      : `it has the ${sql.startsWith("CREATE VIRTUAL") ? "virtual " : ""}${type} ${name}, which no release of Petstore has made`;
  const functions = functionsIn(connection);
  const added = [...objects].filter(([words]) => !released.has(words)).map(([, object]) => object);
  const prepared = added.filter(({ sql }) => !onlyCompares(sql, functions));
  if (prepared.length > 0) return prepared.map(describe);
  const version = latestVersion(stepsOf(connection));
  if (version > latestVersion(migrations)) return differentColumns(columnsIn(connection), newestColumns);
  const own = byVersion.get(version) ?? new Map<string, SchemaObject>();
  const others = [...objects].filter(
    ([words, { sql }]) => !own.has(words) && !optional.has(words) && !/^CREATE (?:UNIQUE )?INDEX /.test(sql),
  );
  const present = new Set([...objects.values()].map(({ name }) => name));
  // Without an index that is not unique, the data are the same.
  const missing = [...own].filter(
    ([words, { sql }]) => !objects.has(words) && !sql.startsWith("CREATE INDEX"),
  );
  const problems = [
    ...others.map(([, object]) => describe(object)),
    ...missing.map(([, object]) =>
      present.has(object.name) ? describe(object) : `it lacks the ${object.type} ${object.name}`,
    ),
  ];
  return [...new Set(problems)];
}

function objectsIn(connection: Connection): Objects {
  const rows = connection.all<SchemaObject>(
    "SELECT type, name, sql FROM main.sqlite_schema WHERE sql IS NOT NULL ORDER BY type, name",
  );
  return new Map(rows.map((row) => [wordsOf(row.sql).join(" "), row]));
}

/** The tables in which ANALYZE stores what it counts. */
const STATISTICS = [
  "CREATE TABLE sqlite_stat1(tbl,idx,stat)",
  "CREATE TABLE sqlite_stat4(tbl,idx,neq,nlt,ndlt,sample)",
];

/** Makes the schema of each version. It takes some milliseconds. */
function releasedSchemas(migrations: readonly Migration[]): ReleasedSchemas {
  const connection = new Connection(new Database(":memory:"));
  try {
    connection.exec(CREATE_VERSION_TABLE);
    for (const sql of Object.values(BACKUP_TABLES)) connection.exec(sql);
    const optional = new Map(objectsIn(connection));
    // Release 1.1.0 made the table of versions without this column.
    connection.exec("ALTER TABLE schema_migrations DROP COLUMN oldest_release");
    for (const [words, object] of objectsIn(connection)) optional.set(words, object);
    for (const sql of STATISTICS) optional.set(wordsOf(sql).join(" "), { type: "table", name: "", sql });
    const byVersion = new Map<number, Objects>();
    for (const { version, sql } of migrations) {
      connection.exec(sql);
      const objects = [...objectsIn(connection)].filter(([words]) => !optional.has(words));
      byVersion.set(version, new Map(objects));
    }
    return { byVersion, optional, newestColumns: columnsIn(connection) };
  } finally {
    connection.close();
  }
}

function columnsIn(connection: Connection): Columns {
  const rows = connection.all<Record<string, unknown>>(
    `SELECT m.name AS "table", c.name, c.type, c."notnull" || '', c.dflt_value, c.pk || '', c.hidden || ''
       FROM main.sqlite_schema AS m JOIN pragma_table_xinfo(m.name, 'main') AS c WHERE m.type = 'table'`,
  );
  return new Map(rows.map((row) => [`${String(row["table"])}.${String(row["name"])}`, JSON.stringify(row)]));
}

/** A newer release may add columns, and drop those that this one can do without. */
function differentColumns(found: Columns, own: Columns): string[] {
  const different = [...own].filter(([name, column]) => (found.get(name) ?? column) !== column);
  return different.map(([name]) => `its column ${name} is not that of any release of Petstore`);
}

const WORD = /[\w$\u0080-\u{10ffff}]+|'(?:[^']|'')*'|"(?:[^"]|"")*"|`(?:[^`]|``)*`|\[[^\]]*\]|[^]/u;
const SPACE = /[ \t\n\f\r]+|--[^\n]*|\/\*[^]*?(?:\*\/|$)/u;
const WORDS = new RegExp(`${SPACE.source}|(${WORD.source})`, "gu");

/**
 * The words of SQL, without white space and comments: ALTER TABLE and earlier releases have written the same tables with
 * others.
 */
function wordsOf(sql: string): string[] {
  return [...sql.matchAll(WORDS)].flatMap(([, word]) => word ?? []);
}

/** These call functions without naming them, or generate columns. */
const CALLING = new Set(["like", "glob", "regexp", "match", "as", "generated", "virtual"]);
/** These make longer values, or parse them. */
const CALLING_SIGNS = new Set(["||", "->"]);
/** It takes no longer than reading the value. */
const ALLOWED_FUNCTION = "length";

/**
 * Whether the SQL makes a table or an index that only compares values, as an index of an administrator and the tables of
 * a newer release may. Anything else can take any time and memory, for example `randomblob(1e9)`.
 */
export function onlyCompares(sql: string, functions: ReadonlySet<string>): boolean {
  if (!/^CREATE (?:TABLE|INDEX|UNIQUE INDEX) /.test(sql)) return false;
  const words = wordsOf(sql).map((word) => word.toLowerCase());
  return words.every((word, i) => {
    const next = words[i + 1];
    if (CALLING_SIGNS.has(`${word}${next}`)) return false;
    if (next !== "(") return !CALLING.has(word);
    const name = word.replace(/^["`[](.*)["`\]]$/u, "$1");
    return name === ALLOWED_FUNCTION || !(functions.has(name) || CALLING.has(name));
  });
}

/** The functions of SQLite. */
export function functionsIn(connection: Connection): ReadonlySet<string> {
  const rows = connection.all<{ name: string }>("SELECT DISTINCT name FROM pragma_function_list");
  return new Set(rows.map(({ name }) => name.toLowerCase()));
}
