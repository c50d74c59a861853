import type { Statement } from "bun:sqlite";
import type { NewPet, Pet, PetStatus } from "../../contract/resources.ts";
import type { Page, PageQuery } from "../../domain/ports.ts";
import { PET_COLUMNS, petOf, type PetRow } from "../rows.ts";
import type { ChangeCounters } from "./change-counters.ts";
import type { Connection } from "./connection.ts";
import { PageReader } from "./page-query.ts";
import { translateErrors } from "./sqlite-errors.ts";

const SELECT = `SELECT ${PET_COLUMNS} FROM pets`;

/** Counts a change before its commit. Nothing is read in between, and a failed change is counted without harm. */
export class Pets {
  readonly #pages: PageReader<PetRow, Pet>;
  readonly #selectById: Statement<PetRow, [bigint]>;
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
    this.#insert = connection.prepare("INSERT INTO pets (name, category_id, status) VALUES (?, ?, ?)");
    this.#updateStatus = connection.prepare("UPDATE pets SET status = ? WHERE id = ?");
    this.#update = connection.prepare("UPDATE pets SET name = ?, category_id = ?, status = ? WHERE id = ?");
    this.#delete = connection.prepare("DELETE FROM pets WHERE id = ?");
  }

  list(query: PageQuery<PetStatus>): Page<Pet> {
    return this.#pages.read(query);
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
