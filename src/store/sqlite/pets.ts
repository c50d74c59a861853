import type { Statement } from "bun:sqlite";
import type { NewPet, Pet, PetStatus } from "../../domain/resources.ts";
import type { Page, PetQuery } from "../../domain/ports.ts";
import { idsAfter, pageOf, PET_COLUMNS, petOf, type PetRow } from "../rows.ts";
import type { ChangeCounters } from "./pet-pages/change-counters.ts";
import type { Connection } from "./connection.ts";
import { PageReader } from "./page-query.ts";
import { translateErrors } from "./sqlite-errors.ts";

const SELECT = `SELECT ${PET_COLUMNS} FROM pets`;

/** The parameters are a JSON array of identifiers, the status or null, and the limit. */
export const BY_IDS =
  "id IN (SELECT value FROM json_each(?1)) AND (?2 IS NULL OR status = ?2) ORDER BY id LIMIT +?3";

/** Counts a change before its commit. Nothing is read in between, and a failed change is counted without harm. */
export class Pets {
  readonly #pages: PageReader<PetRow, Pet>;
  readonly #selectById: Statement<PetRow, [bigint]>;
  readonly #selectByIds: Statement<PetRow, [string, PetStatus | null, number]>;
  readonly #insert: Statement<unknown, [string, bigint, PetStatus | null]>;
  readonly #updateStatus: Statement<unknown, [PetStatus, bigint]>;
  readonly #update: Statement<unknown, [string, bigint, PetStatus | null, bigint]>;
  readonly #delete: Statement<unknown, [bigint]>;

  constructor(
    connection: Connection,
    private readonly changes: ChangeCounters,
  ) {
    this.#pages = new PageReader(connection, { select: SELECT, itemOf: petOf });
    this.#selectById = connection.prepare(`${SELECT} WHERE id = ?`);
    this.#selectByIds = connection.prepare(`${SELECT} WHERE ${BY_IDS}`);
    this.#insert = connection.prepare("INSERT INTO pets (name, category_id, status) VALUES (?, ?, ?)");
    this.#updateStatus = connection.prepare("UPDATE pets SET status = ? WHERE id = ?");
    this.#update = connection.prepare("UPDATE pets SET name = ?, category_id = ?, status = ? WHERE id = ?");
    this.#delete = connection.prepare("DELETE FROM pets WHERE id = ?");
  }

  list(query: PetQuery): Page<Pet> {
    if (query.ids === undefined) return this.#pages.read(query);
    const { status = null, limit } = query;
    const ids = `[${idsAfter(query).join(",")}]`;
    return translateErrors(() => pageOf(this.#selectByIds.all(ids, status, limit + 1), limit, petOf));
  }

  get(id: bigint): Pet | undefined {
    const row = translateErrors(() => this.#selectById.get(id));
    return row === null ? undefined : petOf(row);
  }

  insert({ name, categoryId, status }: NewPet): bigint {
    this.changes.petAdded();
    return BigInt(this.#insert.run(name, categoryId, status ?? null).lastInsertRowid);
  }

  setStatus(id: bigint, status: PetStatus): void {
    this.changes.petChanged(id);
    this.#updateStatus.run(status, id);
  }

  update({ id, name, categoryId, status }: Pet): void {
    this.changes.petChanged(id);
    this.#update.run(name, categoryId, status ?? null, id);
  }

  delete(id: bigint): void {
    this.changes.everythingChanged();
    this.#delete.run(id);
  }
}
