import type { SQL } from "bun";
import { IDEMPOTENCY_CONFLICT, IDEMPOTENCY_LIFETIME_MS } from "../../domain/idempotency.ts";
import { type IdempotencyRecord, replay, requestName } from "../idempotency.ts";
import type { IdempotentOperation } from "../../domain/operation-ids.ts";
import type {
  IdempotencyRejection,
  IdempotentRequest,
  WriteResult,
} from "../../domain/ports/pets-and-orders.ts";
import type { ConnectionPool } from "./connection-pool.ts";
import { withNumberedParameters, POSTGRES_DIALECT } from "./dialect.ts";

/** A write. `request` exists only with an Idempotency-Key. */
interface Write {
  readonly request: IdempotentRequest | undefined;
}

type IdempotentWrite = Write & { readonly request: IdempotentRequest };

/** Expired records are deleted once in this many writes. */
const WRITES_PER_PURGE = 100;
const MAX_PURGED = 1_000;
/** The time of this database in milliseconds. The clocks of two servers can differ by any amount. */
const NOW = "floor(extract(epoch FROM clock_timestamp()) * 1000)::int8";
/** The time of the newest expired record. The parameter is the time by which the server deletes old data. */
const EXPIRY = `least(${NOW}, ?) - ${IDEMPOTENCY_LIFETIME_MS}`;
const DELETE_EXPIRED = withNumberedParameters(
  POSTGRES_DIALECT.deleteFirst({ table: "attempts", where: `created_at <= ${EXPIRY}`, order: "created_at" }),
);
/**
 * The lock of a row counts as a write. A commit waits for the disk and for a synchronous standby only if its
 * transaction has written something, so a replay is acknowledged as durably as the first response.
 */
const FIND = withNumberedParameters(`
  SELECT key_id AS "keyId", idempotency_key AS "idempotencyKey", fingerprint, resource_id AS id, body
  FROM unnest(?::int8[], ?::text[]) AS given (key_id, idempotency_key)
  JOIN attempts USING (key_id, idempotency_key)
  WHERE operation = ? AND created_at > ${EXPIRY}
  FOR UPDATE OF attempts`);
/** A record that exists and was not found has expired. */
const SAVE = withNumberedParameters(`
  INSERT INTO attempts (operation, key_id, idempotency_key, fingerprint, resource_id, body, created_at)
  SELECT ?, given.*, ${NOW} FROM unnest(?::int8[], ?::text[], ?::text[], ?::int8[], ?::text[]) AS given
  ON CONFLICT (key_id, operation, idempotency_key) DO UPDATE SET fingerprint = excluded.fingerprint,
    resource_id = excluded.resource_id, body = excluded.body, created_at = excluded.created_at`);

/** The stored results of one operation's idempotent requests. The database's clock says when one expires. */
export class PostgresIdempotencyRecords {
  #writesUntilPurge = 0;

  constructor(
    private readonly operation: IdempotentOperation,
    private readonly pool: ConnectionPool,
    private readonly retentionNow = () => Number.MAX_SAFE_INTEGER,
  ) {}

  /**
   * Returns the results of those writes that were done before. A write that is missing from the map has to be done now.
   * Its request is locked until the transaction ends, and the same request on any server is rejected meanwhile.
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

  /** Finds the records and locks their rows. */
  async #find(tx: SQL, writes: readonly IdempotentWrite[]): Promise<Map<string, IdempotencyRecord>> {
    const rows = await tx.unsafe<(IdempotencyRecord & { keyId: bigint; idempotencyKey: string })[]>(FIND, [
      writes.map(({ request }) => request.keyId),
      writes.map(({ request }) => request.idempotencyKey),
      this.operation,
      this.retentionNow(),
    ]);
    return new Map(
      rows.map((row) => [requestName(this.operation, { ...row, keyId: Number(row.keyId) }), row]),
    );
  }

  /** Stores the results, in the transaction of the writes and after them. */
  async save(tx: SQL, results: readonly (readonly [Write, WriteResult])[]): Promise<void> {
    const records = results.flatMap(([write, result]) => (isIdempotent(write) ? { ...write, result } : []));
    if (records.length === 0) return;
    await tx.unsafe(SAVE, [
      this.operation,
      records.map(({ request }) => request.keyId),
      records.map(({ request }) => request.idempotencyKey),
      records.map(({ request }) => request.fingerprint),
      records.map(({ result }) => result.id),
      records.map(({ result }) => result.body),
    ]);
  }

  /** Deletes expired records from time to time, in the background, so that no write waits for it. */
  purge(writes: readonly Write[]): void {
    this.#writesUntilPurge -= writes.length;
    if (this.#writesUntilPurge >= 0) return;
    this.#writesUntilPurge = WRITES_PER_PURGE;
    // The error is ignored: the writes themselves report an outage, and the next purge comes soon.
    const values = [this.retentionNow(), MAX_PURGED];
    this.pool.query(async (sql) => sql.unsafe(DELETE_EXPIRED, values)).catch(() => {});
  }
}

function isIdempotent<W extends Write>(write: W): write is W & IdempotentWrite {
  return write.request !== undefined;
}
