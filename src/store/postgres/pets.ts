import type { SQL } from "bun";
import type { IdempotencyRejection, IdempotentRequest, WriteResult } from "../../domain/ports.ts";
import { encodePet, type NewPet } from "../../domain/resources.ts";
import { requireRow } from "../statements.ts";
import { nextIdLock } from "./connection.ts";
import { IdempotencyRecords } from "./idempotency.ts";
import type { Pools } from "./pool.ts";

export interface PetCreation {
  readonly pet: NewPet;
  readonly at: number;
  readonly request: IdempotentRequest | undefined;
}

export type CreateResult = WriteResult | IdempotencyRejection;

export class PetCreator {
  readonly #records: IdempotencyRecords;

  constructor(private readonly pools: Pools) {
    this.#records = new IdempotencyRecords("createPet", pools.writes, pools.retentionNow);
  }

  /** Creates all pets in one transaction. The results are in the order of the creations. */
  async create(creations: readonly PetCreation[]): Promise<CreateResult[]> {
    if (creations.every(({ request }) => request === undefined)) {
      // A single statement is a transaction: one round trip, whose end the server sends after the commit.
      const created = await this.pools.creates.query((sql) => insert(sql, creations));
      return created.map(([, result]) => result);
    }
    const results = await this.pools.creates.transaction(async (tx) => {
      const results: Map<PetCreation, CreateResult> = await this.#records.lockAndFind(tx, creations);
      const created = await insert(
        tx,
        creations.filter((creation) => !results.has(creation)),
      );
      await this.#records.save(tx, created);
      for (const [creation, result] of created) results.set(creation, result);
      return results;
    });
    this.#records.purge(creations);
    return creations.map((creation) => requireRow(results.get(creation)));
  }
}

/** ORDER BY applies before the identifiers are assigned, so the first pet gets the lowest. */
const INSERT_PETS = `
  WITH ${nextIdLock("pets")}
  INSERT INTO pets (name, category_id, status)
  SELECT name, category_id, status
  FROM next_id_lock,
    unnest($1::text[], $2::int8[], $3::text[]) WITH ORDINALITY AS given (name, category_id, status, place)
  ORDER BY place
  RETURNING id`;

async function insert(sql: SQL, creations: readonly PetCreation[]): Promise<[PetCreation, WriteResult][]> {
  if (creations.length === 0) return [];
  const rows = await sql.unsafe<{ id: bigint }[]>(INSERT_PETS, [
    creations.map(({ pet }) => pet.name),
    creations.map(({ pet }) => pet.categoryId),
    creations.map(({ pet }) => pet.status ?? null),
  ]);
  return creations.map((creation, i) => {
    const { id } = requireRow(rows[i]);
    return [creation, { id, body: encodePet({ ...creation.pet, id }), replayed: false }];
  });
}
