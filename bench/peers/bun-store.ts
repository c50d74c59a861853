import { Database } from "bun:sqlite";
import { bearerToken, type Key, type KeyRow, keysOf, SELECT_KEYS } from "./keys.ts";
import {
  created,
  type NewPet,
  pageOf,
  petOf,
  PRAGMAS,
  type Query,
  type Row,
  SQL,
  type Store,
} from "./pets.ts";

export function openStore(
  path: string,
): Store & { keyOf(authorization: string | null | undefined): Key | undefined } {
  const database = new Database(path, { readwrite: true });
  for (const pragma of PRAGMAS) database.run(pragma);
  const keys = keysOf(database.prepare<KeyRow, []>(SELECT_KEYS).all());
  const page = database.prepare<Row, [number, number]>(SQL.page);
  const pageByStatus = database.prepare<Row, [string, number, number]>(SQL.pageByStatus);
  const one = database.prepare<Row, [number]>(SQL.one);
  const insert = database.prepare<unknown, [string, number, string | null]>(SQL.insert);

  return {
    keyOf(authorization) {
      const token = bearerToken(authorization);
      return token === undefined ? undefined : keys.get(Bun.CryptoHasher.hash("sha256", token, "hex"));
    },
    list({ limit, status, cursor = 0 }: Query) {
      const rows =
        status === undefined ? page.all(cursor, limit + 1) : pageByStatus.all(status, cursor, limit + 1);
      return pageOf(rows, limit);
    },
    get(id) {
      const row = one.get(id);
      return row === null ? undefined : petOf(row);
    },
    create(pet: NewPet) {
      const { lastInsertRowid } = insert.run(pet.name, pet.categoryId, pet.status ?? null);
      return created(Number(lastInsertRowid), pet);
    },
  };
}
