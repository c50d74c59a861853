import type { Statement } from "bun:sqlite";
import type { IdempotentRequest, WriteResult } from "../../domain/ports.ts";
import {
  type Kept,
  KEPT_MS,
  replay,
  type IdempotentOperation,
  type IdempotencyRejection,
} from "../idempotency.ts";
import type { Connection } from "./connection.ts";

/** Two for each that may have been added lets the table shrink; the rest keeps small batches tidying up too. */
const PURGED_PER_WRITE = 2;
const PURGED_PER_BATCH = 16;

/** The answers to writes that may be repeated. To be called in a transaction. */
export class IdempotencyRecords {
  readonly #find: Statement<Kept, [number, string, string, number]>;
  readonly #keep: Statement<unknown, [number, string, string, string, bigint, string, number]>;
  readonly #oldest: Statement<{ createdAt: bigint }, []>;
  readonly #purge: Statement<unknown, [number, number]>;

  constructor(connection: Connection) {
    this.#find = connection.prepare(`SELECT fingerprint, resource_id AS id, body FROM attempts
      WHERE key_id = ? AND operation = ? AND idempotency_key = ? AND created_at > ?`);
    // REPLACE, because what is there and was not found has expired.
    this.#keep = connection.prepare(`INSERT OR REPLACE INTO attempts
      (key_id, operation, idempotency_key, fingerprint, resource_id, body, created_at) VALUES (?, ?, ?, ?, ?, ?, ?)`);
    this.#oldest = connection.prepare("SELECT created_at AS createdAt FROM attempts ORDER BY id LIMIT 1");
    this.#purge = connection.prepare(`DELETE FROM attempts
      WHERE id IN (SELECT id FROM attempts ORDER BY id LIMIT +?) AND created_at <= ?`);
  }

  recall(
    operation: IdempotentOperation,
    idempotentRequest: IdempotentRequest,
    at: number,
  ): WriteResult | IdempotencyRejection | undefined {
    const kept = this.#find.get(
      idempotentRequest.keyId,
      operation,
      idempotentRequest.idempotencyKey,
      at - KEPT_MS,
    );
    return kept === null ? undefined : replay(idempotentRequest, kept);
  }

  keep(
    operation: IdempotentOperation,
    idempotentRequest: IdempotentRequest,
    answer: WriteResult,
    at: number,
  ): void {
    const { keyId, idempotencyKey, fingerprint } = idempotentRequest;
    this.#keep.run(keyId, operation, idempotencyKey, fingerprint, answer.id, answer.body, at);
  }

  /** A few of the oldest at a time, so that no batch pays for a day's worth. */
  purge(at: number, writes: number): void {
    const expiry = at - KEPT_MS;
    const oldest = this.#oldest.get();
    if (oldest === null || oldest.createdAt > expiry) return;
    this.#purge.run(PURGED_PER_BATCH + PURGED_PER_WRITE * writes, expiry);
  }
}
