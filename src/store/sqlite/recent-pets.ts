import { requireRow, rowsOf, type Steps } from "../sql/steps.ts";
import type { Connection } from "./connection.ts";

/**
 * How many pets enter the index of categories together. With 90 categories each would change a page of its own, which
 * SQLite writes to its log: 32 pets would take 640 µs of processor time instead of 375 (`bun bench/store.ts`). A page
 * of a category reads all pets that follow `recent_after`, too, which takes up to 100 µs for so many. An import, a copy
 * and a server that finds pets of others move `recent_after` behind them.
 */
const MAX_RECENT_PETS = 1_024;

/** It is null without pets. */
const SELECT_ARE_MANY = `SELECT (SELECT max(id) FROM pets) - recent_after > ${MAX_RECENT_PETS} AS "areMany" FROM pet_revision`;
const SELECT_RECENT_AFTER = "SELECT recent_after AS after FROM pet_revision";
/** With a subquery for the parameter, SQLite would collect the pets before it changes them. */
const INDEX_RECENT_PETS = "UPDATE pets SET is_recent = NULL WHERE id > ? AND is_recent IS NOT NULL";
export const NO_PET_IS_RECENT = `UPDATE pet_revision SET recent_after = (SELECT max(id) FROM pets)
  WHERE recent_after < (SELECT max(id) FROM pets)`;

/** Puts the recent pets into the index, after which no pet is recent. */
export function* indexRecentPets(): Steps<void> {
  const [row] = yield* rowsOf<{ after: bigint }>(SELECT_RECENT_AFTER);
  yield* rowsOf(INDEX_RECENT_PETS, requireRow(row).after);
  yield* rowsOf(NO_PET_IS_RECENT);
}

/** Counts the recent pets that this process has created, and puts the recent pets into the index when they are many. */
export class RecentPets {
  #count = 0;

  constructor(private readonly connection: Connection) {}

  added(): void {
    this.#count++;
  }

  /** Whether more pets are recent than this process leaves so, because other processes have added some. */
  areManyStored(): boolean {
    return this.connection.get<{ areMany: bigint | null }>(SELECT_ARE_MANY)?.areMany === 1n;
  }

  /** Must be called in each transaction that may have added pets. */
  indexIfMany(): void {
    if (this.#count >= MAX_RECENT_PETS) this.index();
  }

  index(): void {
    this.connection.runAll(indexRecentPets);
    this.#count = 0;
  }
}
