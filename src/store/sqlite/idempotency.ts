import { IDEMPOTENCY_LIFETIME_MS } from "../../domain/idempotency.ts";
import type {
  IdempotencyRejection,
  IdempotentRequest,
  WriteResult,
} from "../../domain/ports/pets-and-orders.ts";
import { idempotencyExpiry, type IdempotencyRecord, replay } from "../idempotency.ts";
import type { IdempotentOperation } from "../../domain/operation-ids.ts";
import type { RetentionNow } from "../retention-clock.ts";
import type { Connection } from "./connection.ts";

/**
 * Each write can add one record, so deleting two per write lets the table shrink. PURGED_PER_BATCH makes small batches
 * purge enough.
 */
const PURGED_PER_WRITE = 2;
const PURGED_PER_BATCH = 16;

/** A write whose request has an Idempotency-Key. */
interface IdempotentWrite {
  readonly operation: IdempotentOperation;
  readonly at: number;
  readonly request: IdempotentRequest;
}

const SELECT = `SELECT fingerprint, resource_id AS id, body FROM attempts
  WHERE key_id = ? AND operation = ? AND idempotency_key = ? AND created_at > ?`;
/** REPLACE applies to a record that exists although it was not found: such a record has expired. */
const INSERT = `INSERT OR REPLACE INTO attempts
  (key_id, operation, idempotency_key, fingerprint, resource_id, body, created_at) VALUES (?, ?, ?, ?, ?, ?, ?)`;
const SELECT_OLDEST = "SELECT created_at AS createdAt FROM attempts ORDER BY id LIMIT 1";
const DELETE_OLDEST = `DELETE FROM attempts
  WHERE id IN (SELECT id FROM attempts ORDER BY id LIMIT +?) AND created_at NOT BETWEEN ? AND ?`;

/** The stored results of idempotent requests. Every method is called in a transaction. */
export class SqliteIdempotencyRecords {
  constructor(
    private readonly connection: Connection,
    private readonly retentionNow?: RetentionNow,
  ) {}

  find({ operation, at, request }: IdempotentWrite): WriteResult | IdempotencyRejection | undefined {
    const expiry = idempotencyExpiry(at, this.retentionNow);
    const { keyId, idempotencyKey } = request;
    const record = this.connection.get<IdempotencyRecord>(SELECT, keyId, operation, idempotencyKey, expiry);
    return record && replay(request, record);
  }

  save({ operation, at, request }: IdempotentWrite, { id, body }: WriteResult): void {
    const { keyId, idempotencyKey, fingerprint } = request;
    this.connection.run(INSERT, keyId, operation, idempotencyKey, fingerprint, id, body, at);
  }

  /**
   * Deletes some of the oldest expired records, so that no single batch deletes a whole day of them. A record from the
   * future, written while the clock was wrong, is deleted too: it would block the deletion of those after it.
   */
  purge(at: number, writes: number): void {
    const [first, last] = [idempotencyExpiry(at, this.retentionNow) + 1, at + IDEMPOTENCY_LIFETIME_MS];
    const oldest = this.connection.get<{ createdAt: bigint }>(SELECT_OLDEST);
    if (oldest === undefined || (oldest.createdAt >= first && oldest.createdAt <= last)) return;
    this.connection.run(DELETE_OLDEST, PURGED_PER_BATCH + PURGED_PER_WRITE * writes, first, last);
  }
}
