import type { Statement } from "bun:sqlite";
import type { NewPet, Pet, PetStatus } from "../../contract/resources.ts";
import type { Page, PageQuery } from "../../domain/ports.ts";
import { PET_COLUMNS, petOf, type PetRow } from "../rows.ts";
import type { Connection } from "./connection.ts";
import { asFault } from "./sqlite-errors.ts";
import type { ChangeCounters } from "./change-counters.ts";
import { Listing } from "./page-query.ts";

const SELECT = `SELECT ${PET_COLUMNS} FROM pets`;

/** Changes are counted when they are made: until their commit nobody reads, and one that fails was counted in vain. */
export class Pets {
  readonly #listing: Listing<PetRow, PetStatus>;
  readonly #one: Statement<PetRow, [bigint]>;
  readonly #insert: Statement<unknown, [string, bigint, PetStatus | null]>;
  readonly #setStatus: Statement<unknown, [PetStatus, bigint]>;

  constructor(
    connection: Connection,
    private readonly changes: ChangeCounters,
  ) {
    this.#listing = new Listing(connection, SELECT);
    this.#one = connection.prepare(`${SELECT} WHERE id = ?`);
    this.#insert = connection.prepare("INSERT INTO pets (name, category_id, status) VALUES (?, ?, ?)");
    this.#setStatus = connection.prepare("UPDATE pets SET status = ? WHERE id = ?");
  }

  list(query: PageQuery<PetStatus>): Page<Pet> {
    return this.#listing.page(query, petOf);
  }

  get(id: bigint): Pet | undefined {
    try {
      const row = this.#one.get(id);
      return row === null ? undefined : petOf(row);
    } catch (error) {
      throw asFault(error);
    }
  }

  insert({ name, categoryId, status }: NewPet): bigint {
    this.changes.petAdded();
    return BigInt(this.#insert.run(name, categoryId, status ?? null).lastInsertRowid);
  }

  setStatus(id: bigint, status: PetStatus): void {
    this.changes.petChanged(id);
    this.#setStatus.run(status, id);
  }
}
