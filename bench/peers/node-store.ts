import { hash } from "node:crypto";
import Database from "better-sqlite3";
import { createStore, PRAGMAS, type Statement, type Value } from "./peer-store.ts";

export function openStore(path: string) {
  const database = new Database(path);
  for (const pragma of PRAGMAS) database.exec(pragma);
  return createStore({
    prepare: <Row>(sql: string): Statement<Row> => database.prepare<Value[], Row>(sql),
    sha256: (text) => hash("sha256", text),
  });
}
