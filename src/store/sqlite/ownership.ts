import type { Connection } from "./connection.ts";

/** "PetS": how other programs, and `file`, tell a database of ours. */
const OURS = 0x50_65_74_53;

/** Taken together with a step of the schema, so that no file is marked and still empty. */
export function claim(connection: Connection): void {
  connection.run(`PRAGMA application_id = ${OURS}`);
}

/** Before anything is changed: tables of ours among those of another program would help nobody. */
export function refuseForeign(connection: Connection): void {
  const id = Number(connection.value("PRAGMA application_id"));
  if (id === OURS || (id === 0 && (isEmpty(connection) || hasOurRecord(connection)))) return;
  throw new Error("it belongs to another program; move it away or choose another folder");
}

function isEmpty(connection: Connection): boolean {
  return connection.value("SELECT 1 FROM sqlite_schema") === undefined;
}

/** The first releases did not claim their files. Others call a table of theirs by this name too, with other columns. */
function hasOurRecord(connection: Connection): boolean {
  const columns = connection.value("SELECT group_concat(name) FROM pragma_table_info('schema_migrations')");
  return columns === "version,name,applied_at";
}
