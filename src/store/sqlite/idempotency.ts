import type { Statement } from "bun:sqlite";
import { IDEMPOTENCY_LIFETIME_MS } from "../../domain/constants.ts";
import { type IdempotencyRecord, replay } from "../../domain/idempotency.ts";
import type { IdempotencyRejection, IdempotentRequest, WriteResult } from "../../domain/ports.ts";
import type { IdempotentOperation } from "../idempotency.ts";
import type { Connection } from "./connection.ts";

/** Each write can add one record, so two per write let the table shrink; the rest makes small batches purge enough. */
const PURGED_PER_WRITE = 2;
const PURGED_PER_BATCH = 16;

interface IdempotentWrite {
  readonly operation: IdempotentOperation;
  readonly at: number;
  readonly request: IdempotentRequest;
}

/** The stored results of idempotent requests. Every method is called in a transaction. */
export class IdempotencyRecords {
  readonly #select: Statement<IdempotencyRecord, [number, string, string, number]>;
  readonly #insert: Statement<unknown, [number, string, string, string, bigint, string, number]>;
  readonly #selectOldest: Statement<{ createdAt: bigint }, []>;
  readonly #deleteOldest: Statement<unknown, [number, number]>;

  constructor(connection: Connection) {
    this.#select = connection.prepare(`SELECT fingerprint, resource_id AS id, body FROM attempts
      WHERE key_id = ? AND operation = ? AND idempotency_key = ? AND created_at > ?`);
    // REPLACE, because a record that exists and is not found has expired.
    this.#insert = connection.prepare(`INSERT OR REPLACE INTO attempts
      (key_id, operation, idempotency_key, fingerprint, resource_id, body, created_at) VALUES (?, ?, ?, ?, ?, ?, ?)`);
    this.#selectOldest = connection.prepare(
      "SELECT created_at AS createdAt FROM attempts ORDER BY id LIMIT 1",
    );
    this.#deleteOldest = connection.prepare(`DELETE FROM attempts
      WHERE id IN (SELECT id FROM attempts ORDER BY id LIMIT +?) AND created_at <= ?`);
  }

  find({ operation, at, request }: IdempotentWrite): WriteResult | IdempotencyRejection | undefined {
    const expiry = at - IDEMPOTENCY_LIFETIME_MS;
    const record = this.#select.get(request.keyId, operation, request.idempotencyKey, expiry);
    return record === null ? undefined : replay(request, record);
  }

  save({ operation, at, request }: IdempotentWrite, { id, body }: WriteResult): void {
    const { keyId, idempotencyKey, fingerprint } = request;
    this.#insert.run(keyId, operation, idempotencyKey, fingerprint, id, body, at);
  }

  /** Deletes some of the oldest expired records, so that no single batch deletes a day's worth. */
  purge(at: number, writes: number): void {
    const expiry = at - IDEMPOTENCY_LIFETIME_MS;
    const oldest = this.#selectOldest.get();
    if (oldest === null || oldest.createdAt > expiry) return;
    this.#deleteOldest.run(PURGED_PER_BATCH + PURGED_PER_WRITE * writes, expiry);
  }
}
