import type { SQL } from "bun";
import type { IdempotentRequest, WriteResult } from "../../domain/ports.ts";
import {
  type Kept,
  KEPT_MS,
  nameOf,
  replay,
  type IdempotentOperation,
  type IdempotencyRejection,
  STILL_RUNNING,
} from "../idempotency.ts";
import type { ConnectionPool } from "./connection-pool.ts";

/** A write that may be repeated, if it came with an Idempotency-Key. */
export interface Repeatable {
  readonly at: number;
  readonly idempotentRequest: IdempotentRequest | undefined;
}

/** How often the expired are looked for, in writes, and how many are removed at most. */
const PURGE_EVERY = 100;
const PURGED_AT_ONCE = 1_000;

/** The answers to writes of one operation that may be repeated. */
export class IdempotencyRecords {
  #untilPurge = 0;

  constructor(
    private readonly operation: IdempotentOperation,
    private readonly pool: ConnectionPool,
  ) {}

  /**
   * The writes that are answered already. Those not in the map are to be done now, and their attempts are held until
   * the transaction ends: others, on any instance, are told that they are running and do not wait.
   */
  async begin<Write extends Repeatable>(
    tx: SQL,
    writes: readonly Write[],
  ): Promise<Map<Write, WriteResult | IdempotencyRejection>> {
    const answers = new Map<Write, WriteResult | IdempotencyRejection>();
    const repeated = writes.filter(hasAttempt);
    if (repeated.length === 0) return answers;
    const claimed = await this.#claim(tx, repeated);
    // In a statement of its own, after the locks, so that it sees what was committed before they were had.
    const kept = await this.#recall(tx, repeated);
    for (const [i, write] of repeated.entries()) {
      const found = kept.get(nameOf(this.operation, write.idempotentRequest));
      if (!claimed[i]) answers.set(write, STILL_RUNNING);
      else if (found !== undefined) answers.set(write, replay(write.idempotentRequest, found));
    }
    return answers;
  }

  async #claim(tx: SQL, writes: readonly Held[]): Promise<boolean[]> {
    const rows = await tx<{ claimed: boolean }[]>`
      SELECT pg_try_advisory_xact_lock(hashtextextended(name, 'attempts'::regclass::oid::int8)) AS claimed
      FROM unnest(${writes.map(({ idempotentRequest }) => nameOf(this.operation, idempotentRequest))}::text[])
        WITH ORDINALITY AS given (name, place)
      ORDER BY place`;
    return rows.map(({ claimed }) => claimed);
  }

  async #recall(tx: SQL, writes: readonly Held[]): Promise<Map<string, Kept>> {
    const rows = await tx<(Kept & { keyId: bigint; idempotencyKey: string })[]>`
      SELECT key_id AS "keyId", idempotency_key AS "idempotencyKey", fingerprint, resource_id AS id, body
      FROM unnest(${writes.map(({ idempotentRequest }) => idempotentRequest.keyId)}::int8[],
        ${writes.map(({ idempotentRequest }) => idempotentRequest.idempotencyKey)}::text[],
        ${writes.map(({ at }) => at - KEPT_MS)}::int8[]) AS given (key_id, idempotency_key, expiry)
      JOIN attempts USING (key_id, idempotency_key)
      WHERE operation = ${this.operation} AND created_at > expiry`;
    return new Map(rows.map((row) => [nameOf(this.operation, { ...row, keyId: Number(row.keyId) }), row]));
  }

  /** In the transaction of the writes, after them. */
  async keep(tx: SQL, done: readonly (readonly [Repeatable, WriteResult])[]): Promise<void> {
    const kept = done.flatMap(([write, answer]) => (hasAttempt(write) ? { ...write, answer } : []));
    if (kept.length === 0) return;
    await tx`
      INSERT INTO attempts (operation, key_id, idempotency_key, fingerprint, resource_id, body, created_at)
      SELECT ${this.operation}, given.*
      FROM unnest(${kept.map(({ idempotentRequest }) => idempotentRequest.keyId)}::int8[],
        ${kept.map(({ idempotentRequest }) => idempotentRequest.idempotencyKey)}::text[],
        ${kept.map(({ idempotentRequest }) => idempotentRequest.fingerprint)}::text[],
        ${kept.map(({ answer }) => answer.id)}::int8[],
        ${kept.map(({ answer }) => answer.body)}::text[],
        ${kept.map(({ at }) => at)}::int8[]) AS given
      -- What is there and was not found has expired.
      ON CONFLICT (key_id, operation, idempotency_key) DO UPDATE SET fingerprint = excluded.fingerprint,
        resource_id = excluded.resource_id, body = excluded.body, created_at = excluded.created_at`;
  }

  /** Now and then removes what has expired, behind the writes and never in front of one. */
  tidy(writes: readonly Repeatable[]): void {
    const at = writes.at(-1)?.at;
    this.#untilPurge -= writes.length;
    if (at === undefined || this.#untilPurge >= 0) return;
    this.#untilPurge = PURGE_EVERY;
    // A failure is seen by those who wait for an answer; this is tried again soon enough.
    this.pool.run((sql) => purge(sql, at - KEPT_MS)).catch(() => {});
  }
}

type Held = Repeatable & { readonly idempotentRequest: IdempotentRequest };

function hasAttempt<Write extends Repeatable>(write: Write): write is Write & Held {
  return write.idempotentRequest !== undefined;
}

/** SKIP LOCKED: another instance may be at it, and nobody may wait while holding locks on several. */
async function purge(sql: SQL, expiry: number): Promise<void> {
  await sql`
    DELETE FROM attempts WHERE ctid = ANY (ARRAY(
      SELECT ctid FROM attempts WHERE created_at <= ${expiry} ORDER BY created_at
      LIMIT ${PURGED_AT_ONCE} FOR UPDATE SKIP LOCKED))`;
}
