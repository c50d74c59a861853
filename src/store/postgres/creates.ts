import type { SQL } from "bun";
import { encodePet, type NewPet } from "../../contract/resources.ts";
import type { IdempotentRequest, WriteResult } from "../../domain/ports.ts";
import type { IdempotencyRejection } from "../idempotency.ts";
import type { IdempotencyRecords } from "./idempotency-records.ts";
import type { ConnectionPool } from "./connection-pool.ts";
import { turnFor } from "./advisory-locks.ts";

export interface Create {
  readonly pet: NewPet;
  readonly at: number;
  readonly idempotentRequest: IdempotentRequest | undefined;
}

export type Created = WriteResult | IdempotencyRejection;

/** Adds pets, all of them in one transaction and one statement. */
export class Creates {
  constructor(
    private readonly pool: ConnectionPool,
    private readonly attempts: IdempotencyRecords,
  ) {}

  async run(creates: readonly Create[]): Promise<Map<Create, Created>> {
    if (creates.every(({ idempotentRequest }) => idempotentRequest === undefined)) {
      // A statement alone is a transaction: one message there, one back. What comes back is waited for to its end,
      // which the server sends after the commit.
      return new Map(await this.pool.run((sql) => insert(sql, creates)));
    }
    const answers = await this.pool.transaction(async (tx) => {
      const answers: Map<Create, Created> = await this.attempts.begin(tx, creates);
      const added = await insert(
        tx,
        creates.filter((create) => !answers.has(create)),
      );
      await this.attempts.keep(tx, added);
      for (const [create, answer] of added) answers.set(create, answer);
      return answers;
    });
    this.attempts.tidy(creates);
    return answers;
  }
}

/** `ORDER BY` before the identifiers are taken: the first row gets the smallest. */
const INSERT = `
  WITH ${turnFor("pets")}
  INSERT INTO pets (name, category_id, status)
  SELECT name, category_id, status
  FROM turn, unnest($1::text[], $2::int8[], $3::text[]) WITH ORDINALITY AS given (name, category_id, status, place)
  ORDER BY place
  RETURNING id`;

async function insert(sql: SQL, creates: readonly Create[]): Promise<[Create, WriteResult][]> {
  if (creates.length === 0) return [];
  const rows = await sql.unsafe<{ id: bigint }[]>(INSERT, [
    creates.map(({ pet }) => pet.name),
    creates.map(({ pet }) => pet.categoryId),
    creates.map(({ pet }) => pet.status ?? null),
  ]);
  return creates.map((create, i) => [create, answer(create.pet, rows[i])]);
}

function answer(pet: NewPet, row: { id: bigint } | undefined): WriteResult {
  if (row === undefined) throw new Error("a pet was added without an identifier");
  return { id: row.id, body: encodePet({ ...pet, id: row.id }), replayed: false };
}
