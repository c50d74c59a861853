import { Database } from "bun:sqlite";
import { createStore, PRAGMAS, type Statement, type Value } from "./peer-store.ts";

export function openStore(path: string) {
  const database = new Database(path, { readwrite: true });
  for (const pragma of PRAGMAS) database.run(pragma);
  return createStore({
    prepare: <Row>(sql: string): Statement<Row> => database.prepare<Row, Value[]>(sql),
    sha256: (text) => Bun.CryptoHasher.hash("sha256", text, "hex"),
  });
}
