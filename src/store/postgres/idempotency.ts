import type { SQL } from "bun";
import {
  idempotencyExpiry,
  type IdempotencyRecord,
  type IdempotentOperation,
  replay,
  requestName,
} from "../idempotency.ts";
import type { IdempotencyRejection, IdempotentRequest, WriteResult } from "../../domain/ports.ts";
import { IDEMPOTENCY_CONFLICT } from "../../domain/resources.ts";
import type { ConnectionPool } from "./pool.ts";
import { withNumberedParameters, POSTGRES_DIALECT } from "./statements.ts";

/** A write. `request` exists only with an Idempotency-Key. */
interface Write {
  readonly at: number;
  readonly request: IdempotentRequest | undefined;
}

type IdempotentWrite = Write & { readonly request: IdempotentRequest };

/** Expired records are deleted once in this many writes. */
const WRITES_PER_PURGE = 100;
const MAX_PURGED = 1_000;
const DELETE_EXPIRED = withNumberedParameters(
  POSTGRES_DIALECT.deleteFirst({ table: "attempts", where: "created_at <= ?", order: "created_at" }),
);

/** The stored results of one operation's idempotent requests. */
export class IdempotencyRecords {
  #writesUntilPurge = 0;

  constructor(
    private readonly operation: IdempotentOperation,
    private readonly pool: ConnectionPool,
    private readonly retentionNow = () => Infinity,
  ) {}

  /**
   * Returns the results of those writes that were done before. A write that is missing from the map has to be done now.
   * Its request is locked until the transaction ends, and the same request on any instance is rejected meanwhile.
   */
  async lockAndFind<W extends Write>(
    tx: SQL,
    writes: readonly W[],
  ): Promise<Map<W, WriteResult | IdempotencyRejection>> {
    const results = new Map<W, WriteResult | IdempotencyRejection>();
    const idempotent = writes.filter(isIdempotent);
    if (idempotent.length === 0) return results;
    const locked = await this.#lock(tx, idempotent);
    // This statement follows the locks, so that it sees everything that was committed before they were taken.
    const records = await this.#find(tx, idempotent);
    for (const [i, write] of idempotent.entries()) {
      const record = records.get(requestName(this.operation, write.request));
      if (!locked[i]) results.set(write, IDEMPOTENCY_CONFLICT);
      else if (record !== undefined) results.set(write, replay(write.request, record));
    }
    return results;
  }

  async #lock(tx: SQL, writes: readonly IdempotentWrite[]): Promise<boolean[]> {
    const rows = await tx<{ locked: boolean }[]>`
      SELECT pg_try_advisory_xact_lock(hashtextextended(name, 'attempts'::regclass::oid::int8)) AS locked
      FROM unnest(${writes.map(({ request }) => requestName(this.operation, request))}::text[])
        WITH ORDINALITY AS given (name, place)
      ORDER BY place`;
    return rows.map(({ locked }) => locked);
  }

  /**
   * Finds the records and locks their rows. A commit waits for the disk and for a synchronous standby only if its
   * transaction has written something. The lock of a row counts as a write, so a replay is acknowledged as durably as
   * the first response.
   */
  async #find(tx: SQL, writes: readonly IdempotentWrite[]): Promise<Map<string, IdempotencyRecord>> {
    const rows = await tx<(IdempotencyRecord & { keyId: bigint; idempotencyKey: string })[]>`
      SELECT key_id AS "keyId", idempotency_key AS "idempotencyKey", fingerprint, resource_id AS id, body
      FROM unnest(${writes.map(({ request }) => request.keyId)}::int8[],
        ${writes.map(({ request }) => request.idempotencyKey)}::text[],
        ${writes.map(({ at }) => idempotencyExpiry(at, this.retentionNow))}::int8[]) AS given (key_id, idempotency_key, expiry)
      JOIN attempts USING (key_id, idempotency_key)
      WHERE operation = ${this.operation} AND created_at > expiry
      FOR UPDATE OF attempts`;
    return new Map(
      rows.map((row) => [requestName(this.operation, { ...row, keyId: Number(row.keyId) }), row]),
    );
  }

  /** Stores the results, in the transaction of the writes and after them. */
  async save(tx: SQL, results: readonly (readonly [Write, WriteResult])[]): Promise<void> {
    const records = results.flatMap(([write, result]) => (isIdempotent(write) ? { ...write, result } : []));
    if (records.length === 0) return;
    await tx`
      INSERT INTO attempts (operation, key_id, idempotency_key, fingerprint, resource_id, body, created_at)
      SELECT ${this.operation}, given.*
      FROM unnest(${records.map(({ request }) => request.keyId)}::int8[],
        ${records.map(({ request }) => request.idempotencyKey)}::text[],
        ${records.map(({ request }) => request.fingerprint)}::text[],
        ${records.map(({ result }) => result.id)}::int8[],
        ${records.map(({ result }) => result.body)}::text[],
        ${records.map(({ at }) => at)}::int8[]) AS given
      -- A record that exists and was not found has expired.
      ON CONFLICT (key_id, operation, idempotency_key) DO UPDATE SET fingerprint = excluded.fingerprint,
        resource_id = excluded.resource_id, body = excluded.body, created_at = excluded.created_at`;
  }

  /** Deletes expired records from time to time, in the background, so that no write waits for it. */
  purge(writes: readonly Write[]): void {
    const at = writes.at(-1)?.at;
    this.#writesUntilPurge -= writes.length;
    if (at === undefined || this.#writesUntilPurge >= 0) return;
    this.#writesUntilPurge = WRITES_PER_PURGE;
    // The error is ignored: the writes themselves report an outage, and the next purge comes soon.
    const values = [idempotencyExpiry(at, this.retentionNow), MAX_PURGED];
    this.pool.query(async (sql) => sql.unsafe(DELETE_EXPIRED, values)).catch(() => {});
  }
}

function isIdempotent<W extends Write>(write: W): write is W & IdempotentWrite {
  return write.request !== undefined;
}
