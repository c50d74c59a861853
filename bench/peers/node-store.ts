import { hash } from "node:crypto";
import Database from "better-sqlite3";
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
): Store & { keyOf(authorization: string | undefined): Key | undefined } {
  const database = new Database(path);
  for (const pragma of PRAGMAS) database.exec(pragma);
  const keys = keysOf(database.prepare<[], KeyRow>(SELECT_KEYS).all());
  const page = database.prepare<[number, number], Row>(SQL.page);
  const pageByStatus = database.prepare<[string, number, number], Row>(SQL.pageByStatus);
  const one = database.prepare<[number], Row>(SQL.one);
  const insert = database.prepare<[string, number, string | null]>(SQL.insert);

  return {
    keyOf(authorization) {
      const token = bearerToken(authorization);
      return token === undefined ? undefined : keys.get(hash("sha256", token));
    },
    list({ limit, status, cursor = 0 }: Query) {
      const rows =
        status === undefined ? page.all(cursor, limit + 1) : pageByStatus.all(status, cursor, limit + 1);
      return pageOf(rows, limit);
    },
    get(id) {
      const row = one.get(id);
      return row === undefined ? undefined : petOf(row);
    },
    create(pet: NewPet) {
      const { lastInsertRowid } = insert.run(pet.name, pet.categoryId, pet.status ?? null);
      return created(Number(lastInsertRowid), pet);
    },
  };
}
