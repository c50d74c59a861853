import type { SQL } from "bun";
import type {
  IdempotencyRejection,
  IdempotentRequest,
  Page,
  PageQuery,
  PetQuery,
  WriteResult,
} from "../../domain/ports.ts";
import { encodePet, type NewPet, type Pet } from "../../domain/resources.ts";
import { idsAfter, PET_COLUMNS, petOf, type PetRow } from "../rows.ts";
import { pageOf } from "../statements.ts";
import { nextIdLock } from "./connection.ts";
import { IdempotencyRecords } from "./idempotency.ts";
import type { ConnectionPool, Pools } from "./pool.ts";

const SELECT = `SELECT ${PET_COLUMNS} FROM pets`;
export const PET_PAGES: PageQueries = {
  all: `${SELECT} WHERE id > $1 ORDER BY id LIMIT $2`,
  byStatus: `${SELECT} WHERE (status, id) > ($3, $1) AND status <= $3 ORDER BY status, id LIMIT $2`,
};

/** The parameters are the identifiers, the limit, and the status or null. */
export const PETS_BY_IDS = `${SELECT}
  WHERE id = ANY($1::int8[]) AND ($3::text IS NULL OR status = $3) ORDER BY id LIMIT $2`;

export interface PetCreation {
  readonly pet: NewPet;
  readonly at: number;
  readonly request: IdempotentRequest | undefined;
}

export type CreateResult = WriteResult | IdempotencyRejection;

export class Pets {
  readonly #pages: PageReader<PetRow, Pet>;
  readonly #records: IdempotencyRecords;

  constructor(private readonly pools: Pools) {
    this.#pages = new PageReader(pools.reads, PET_PAGES, petOf);
    this.#records = new IdempotencyRecords("createPet", pools.writes, pools.retentionNow);
  }

  async list(query: PetQuery): Promise<Page<Pet>> {
    if (query.ids === undefined) return this.#pages.read(query);
    const { status = null, limit } = query;
    const rows = await this.pools.reads.query((sql) =>
      sql.unsafe<PetRow[]>(PETS_BY_IDS, [idsAfter(query), limit + 1, status]),
    );
    return pageOf(rows, limit, petOf);
  }

  async get(id: bigint): Promise<Pet | undefined> {
    const [row] = await this.pools.reads.query((sql) =>
      sql.unsafe<PetRow[]>(`${SELECT} WHERE id = $1`, [id]),
    );
    return row && petOf(row);
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
    return creations.map((creation) => required(results.get(creation)));
  }
}

/** ORDER BY applies before the identifiers are assigned, so the first pet gets the lowest. */
export const INSERT_PETS = `
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
    const { id } = required(rows[i]);
    return [creation, { id, body: encodePet({ ...creation.pet, id }), replayed: false }];
  });
}

function required<T>(result: T | undefined): T {
  if (result === undefined) throw new Error("PostgreSQL returned fewer rows than pets were created");
  return result;
}

/**
 * The SQL of a page in the order of `id`. The parameters are the identifier to continue after, the limit, the scope if
 * there is one, and in `byStatus` the status.
 *
 * An index finds the first row of every page, so the last page costs what the first one does. Written as
 * `status = $3 AND id > $1`, a condition lets PostgreSQL walk all pets by `id` and filter by status. Where the old pets
 * are sold and the available ones come last, that reads the whole table. `(status, id) > ($3, $1) AND status <= $3`
 * means the same, and the order by (status, id) leaves it the index on (status, id) only.
 */
export interface PageQueries {
  readonly all: string;
  readonly byStatus: string;
}

/** `Scope`: what restricts every page, such as the key of orders. */
export class PageReader<Row, T, Scope extends readonly unknown[] = []> {
  constructor(
    private readonly pool: ConnectionPool,
    private readonly queries: PageQueries,
    private readonly itemOf: (row: Row) => T,
  ) {}

  async read({ after = 0n, status, limit }: PageQuery<string>, ...scope: Scope): Promise<Page<T>> {
    const { all, byStatus } = this.queries;
    const select =
      status === undefined
        ? (sql: SQL) => sql.unsafe<Row[]>(all, [after, limit + 1, ...scope])
        : (sql: SQL) => sql.unsafe<Row[]>(byStatus, [after, limit + 1, ...scope, status]);
    return pageOf(await this.pool.query(select), limit, this.itemOf);
  }
}
