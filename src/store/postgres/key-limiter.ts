import type { ReservedSQL, SQL } from "bun";
import { OutcomeUnknown, Unavailable } from "../../api/errors.ts";
import { messageOf } from "../../runtime/message-of.ts";
import type { BanRules } from "../../domain/ban-rules.ts";
import type { KeyLimiterOptions, RateLimiter } from "../../domain/ports/rate-limiter.ts";
import {
  type Ban,
  charge,
  copyOf,
  type Decision,
  decisionOf,
  expire,
  expiresAt,
  isExpired,
  type KeySubject,
  type Limits,
  newQuota,
  peek,
  type Quota,
  shift,
  shiftDecision,
  unban,
} from "../../domain/rate-limit.ts";
import { BoundedMap } from "../../runtime/bounded-map.ts";
import { fromStored, toStored } from "../../domain/stored-quota.ts";
import { BatchQueue } from "../sql/batch-queue.ts";
import type { KeyQuotas } from "../sql/table-store.ts";
import type { Pools } from "./pools.ts";
import { WRITE_TO_LOG } from "./dialect.ts";

/** The locks of a batch are held for a round trip, in which other servers wait for them. */
const MAX_BATCH = 256;
const MAX_QUEUED = 10_000;
/** Another server may delete a row between the statement that adds it and the one that locks it. */
const MAX_ATTEMPTS = 5;
/** Decisions wait for a purge, which takes about a millisecond. */
const BATCHES_PER_PURGE = 100;
const MAX_PURGED = 100;
/** PostgreSQL writes to the disk, and sends to its standbys, within this time what no commit has waited for. */
const SETTLED_AFTER_MS = 1_000;

/** The quotas of 50,000 keys take 15 MB. */
const MAX_KNOWN_KEYS = 50_000;
const MAX_REPORTED_BANS = 10_000;

interface LimitedRequest {
  readonly keyId: number;
  readonly limits: Limits;
}

/** The decision about a request, and the quota afterwards. */
interface Counted {
  readonly decision: Decision;
  readonly quota: Quota;
}

/**
 * Limits the requests of keys together with all servers. A batch locks the rows of its keys, decides with the rules of
 * domain/rate-limit.ts, and stores the quotas, in one transaction: so the limits are exact. PostgreSQL's clock, read
 * after the locks are taken, is that of all servers.
 *
 * A batch takes two round trips: BEGIN is sent with the statement that locks, and COMMIT with the one that stores. The
 * commit waits neither for the disk nor for a standby, which may be away: it would hold locks that all servers need. So
 * a crash or a failover loses the last counts, of less than a second. The response to a request that is banned follows
 * another write, which has waited for both, so that the ban stays.
 *
 * Times are those of this server's steady clock; in the database, those of PostgreSQL's.
 */
export class PostgresKeyLimiter implements RateLimiter<KeySubject> {
  readonly #options: KeyLimiterOptions;
  readonly #pools: Pick<Pools, "limits" | "reads" | "writes">;
  readonly #batches: BatchQueue<LimitedRequest, Counted>;
  readonly #reads: BatchQueue<number, Quota | undefined>;
  /** Waits until everything that was committed before is on the disk and on the standby. */
  readonly #syncs: BatchQueue<void, void>;
  /** The last quota of each key that this server has seen, for responses while PostgreSQL is unavailable. */
  readonly #known = new BoundedMap<number, Quota>(MAX_KNOWN_KEYS);
  /** The ends of bans that were reported, by key: each is reported once, although every request shows it. */
  readonly #reportedBans = new BoundedMap<number, number>(MAX_REPORTED_BANS);
  #batchesUntilPurge = BATCHES_PER_PURGE;

  constructor(pools: Pick<Pools, "limits" | "reads" | "writes" | "timeoutMs">, options: KeyLimiterOptions) {
    this.#options = options;
    this.#pools = pools;
    this.#batches = new BatchQueue({
      run: (requests) => this.#decideAll(requests),
      maxBatch: MAX_BATCH,
      maxQueued: MAX_QUEUED,
      maxQueueMs: pools.timeoutMs,
      onBatch: (_, ms) => options.onResponse?.(ms),
    });
    this.#reads = new BatchQueue({
      run: (ids) => this.#readAll(ids),
      maxBatch: MAX_BATCH,
      maxQueued: MAX_QUEUED,
    });
    this.#syncs = new BatchQueue({
      async run(waiting) {
        await withKnownOutcome(pools.writes.query(async (sql) => sql.unsafe(WRITE_TO_LOG)));
        return waiting;
      },
      maxBatch: MAX_QUEUED,
      maxQueued: MAX_QUEUED,
      maxQueueMs: pools.timeoutMs,
    });
  }

  get queueLength(): number {
    return this.#batches.queueLength;
  }

  async decide({ id: keyId }: KeySubject, limits: Limits): Promise<Decision> {
    const { clock } = this.#options;
    const { decision, quota } = await this.#batches.submit({ keyId, limits });
    this.#known.set(keyId, quota);
    const isNewBan = decision.outcome === "banned" && clock.steadyNow() - quota.bannedAt < SETTLED_AFTER_MS;
    if (isNewBan) await this.#syncs.submit();
    return shiftDecision(decision, clock.stepMs);
  }

  peek({ id }: KeySubject, limits: Limits): Decision {
    const { clock } = this.#options;
    const known = copyOf(this.#known.get(id) ?? newQuota());
    return shiftDecision(peek(known, limits, clock.steadyNow()), clock.stepMs);
  }

  async quota({ id }: KeySubject): Promise<Quota | undefined> {
    const quota = await this.#reads.submit(id);
    if (quota) shift(quota, this.#options.clock.stepMs);
    return quota;
  }

  async #readAll(ids: readonly number[]): Promise<readonly (Quota | undefined)[]> {
    const read = await this.#pools.reads.query((sql) => select(sql, READ, ids));
    const { quotas, now } = this.#onOurClock(read);
    for (const quota of quotas.values()) expire(quota, now, this.#options.ban());
    return ids.map((id) => {
      const quota = quotas.get(id);
      return quota && !isExpired(quota, now) ? quota : undefined;
    });
  }

  /** They would take a read of all quotas. */
  bannedKeys(): undefined {}

  async unban({ id: keyId }: KeySubject, agoMs: number): Promise<void> {
    const known = this.#known.get(keyId);
    if (known) unban(known, this.#options.clock.steadyNow() - agoMs);
    await this.#transaction([keyId], ({ quotas, now }) => {
      for (const quota of quotas.values()) {
        expire(quota, now, this.#options.ban());
        unban(quota, now - agoMs);
      }
    });
    await this.#syncs.submit();
  }

  async close(): Promise<void> {
    await this.#batches.close();
    await Promise.all([this.#reads.close(), this.#syncs.close()]);
  }

  async #decideAll(requests: readonly LimitedRequest[]): Promise<readonly Counted[]> {
    const rules = this.#options.ban();
    const ids = [...new Set(requests.map(({ keyId }) => keyId))].toSorted((one, other) => one - other);
    const { counted, banned, aheadMs } = await this.#transaction(ids, ({ quotas, now, aheadMs }) => ({
      ...countAll(requests, quotas, now, rules),
      aheadMs,
    }));
    for (const [i, { decision, quota }] of counted.entries()) {
      const { keyId = 0 } = requests[i] ?? {};
      if (decision.outcome !== "banned") continue;
      // By PostgreSQL's clock, a ban has the same times on every server and in every batch.
      const ban = { bannedAt: quota.bannedAt - aheadMs, bannedUntil: quota.bannedUntil - aheadMs };
      this.#report(keyId, ban, banned.has(keyId));
    }
    this.#purge();
    return counted;
  }

  #report(keyId: number, ban: Ban, isNew: boolean): void {
    if (this.#reportedBans.get(keyId) === ban.bannedUntil) return;
    this.#reportedBans.set(keyId, ban.bannedUntil);
    const { onBan, onEarlierBan } = this.#options;
    (isNew ? onBan : onEarlierBan)?.(keyId, ban);
  }

  /** Locks the rows of the keys, lets `work` change their quotas, and stores them. */
  #transaction<T>(ids: readonly number[], work: (locked: Quotas) => T): Promise<T> {
    return withKnownOutcome(
      this.#pools.limits.onConnection(async (sql) => {
        try {
          const locked = this.#onOurClock(await lock(sql, ids));
          const result = work(locked);
          await store(sql, locked);
          return result;
        } catch (error) {
          // The connection may be lost, and the transaction with it.
          await sql`ROLLBACK`.catch(() => {});
          throw error;
        }
      }),
    );
  }

  /** Moves times to this server's steady clock. */
  #onOurClock({ quotas, now: postgresNow }: Selected): Quotas {
    const { clock, testClock } = this.#options;
    const now = clock.steadyNow();
    const aheadMs = now - (testClock?.steadyNow() ?? postgresNow);
    for (const quota of quotas.values()) shift(quota, aheadMs);
    return { quotas, now, aheadMs };
  }

  /** Deletes expired quotas from time to time, in the background. */
  #purge(): void {
    if (--this.#batchesUntilPurge > 0) return;
    this.#batchesUntilPurge = BATCHES_PER_PURGE;
    // The error is ignored: the decisions themselves report an outage, and the next purge comes soon.
    this.#pools.limits.query(async (sql) => sql.unsafe(DELETE_EXPIRED)).catch(() => {});
  }
}

/** Decides one request after the other, and changes the quotas of their keys. `banned` are the keys that this bans. */
function countAll(
  requests: readonly LimitedRequest[],
  quotas: ReadonlyMap<number, Quota>,
  now: number,
  rules: BanRules,
): { readonly counted: readonly Counted[]; readonly banned: ReadonlySet<number> } {
  const banned = new Set<number>();
  const counted = requests.map(({ keyId, limits }) => {
    const quota = quotas.get(keyId) ?? newQuota();
    const outcome = charge(quota, limits, now, rules);
    if (outcome === "new ban") banned.add(keyId);
    return { decision: decisionOf(outcome, quota, limits, now), quota };
  });
  return { counted, banned };
}

/** The request is rejected, so nothing but its count is unknown. */
function withKnownOutcome<T>(result: Promise<T>): Promise<T> {
  return result.catch((error: unknown) => {
    throw error instanceof OutcomeUnknown ? new Unavailable(messageOf(error), { cause: error }) : error;
  });
}

interface Selected {
  readonly quotas: ReadonlyMap<number, Quota>;
  readonly now: number;
}

interface Quotas extends Selected {
  /** The time of the steady clock minus that of PostgreSQL's. */
  readonly aheadMs: number;
}

const NOW = "floor(extract(epoch FROM clock_timestamp()) * 1000)::int8";
const GIVEN_IDS = "string_to_array($1, ',')::int8[]";
/** One row, whose time follows the locks of all others. */
const SUMMARY = `coalesce(string_agg(key_id || ',' || array_to_string(numbers, ','), ';'), '') AS quotas, ${NOW} AS now`;
const READ = `SELECT ${SUMMARY} FROM quotas WHERE key_id = ANY (${GIVEN_IDS})`;
const LOCK = `WITH locked AS MATERIALIZED (
    SELECT key_id, numbers FROM quotas WHERE key_id = ANY (${GIVEN_IDS}) ORDER BY key_id FOR UPDATE
  ) SELECT ${SUMMARY} FROM locked`;
const ADD = `INSERT INTO quotas (key_id, numbers, expires_at)
  SELECT unnest(${GIVEN_IDS}), $2::int8[], ${NOW} ORDER BY 1 ON CONFLICT DO NOTHING`;
const UPDATE = `UPDATE quotas SET numbers = given.numbers::int8[], expires_at = given.expires_at
  FROM (
    SELECT unnest(${GIVEN_IDS}) AS key_id, unnest(string_to_array($2, ';')) AS numbers,
      unnest(string_to_array($3, ',')::int8[]) AS expires_at
  ) AS given WHERE quotas.key_id = given.key_id`;

async function select(sql: SQL, statement: string, ids?: readonly number[]): Promise<Selected> {
  const values = ids === undefined ? [] : [ids.join(",")];
  const [row] = await sql.unsafe<{ quotas: string; now: bigint }[]>(statement, values);
  const rows = row === undefined || row.quotas === "" ? [] : row.quotas.split(";");
  const quotas = new Map<number, Quota>();
  for (const each of rows) {
    const [id = 0, ...numbers] = each.split(",").map(Number);
    quotas.set(id, fromStored(numbers));
  }
  return { quotas, now: Number(row?.now ?? 0) };
}

/**
 * Sends a query now; by itself it waits until somebody awaits it. Queries that are sent together take one round trip.
 * `unsafe` without parameters is not sent before those before it have ended.
 */
function send<T>(query: SQL.Query<T>): SQL.Query<T> {
  return query.execute();
}

/**
 * Begins a transaction with locks of all rows, in the order of the keys. Rows that are missing are added by a statement
 * of its own, which holds no lock while it waits for that of another server.
 */
async function lock(sql: ReservedSQL, ids: readonly number[]): Promise<Selected> {
  let [, locked] = await Promise.all([send(sql`BEGIN`), select(sql, LOCK, ids)]);
  for (let attempt = 1; locked.quotas.size < ids.length; attempt++) {
    if (attempt === MAX_ATTEMPTS)
      throw new Unavailable("PostgreSQL: rows of quotas are deleted again and again");
    const missing = ids.filter((id) => !locked.quotas.has(id));
    const none = `{${toStored(newQuota()).join(",")}}`;
    const [, , , again] = await Promise.all([
      send(sql`COMMIT`),
      send(sql.unsafe(ADD, [missing.join(","), none])),
      send(sql`BEGIN`),
      select(sql, LOCK, ids),
    ]);
    locked = again;
  }
  return locked;
}

async function store(sql: ReservedSQL, { quotas, aheadMs }: Quotas): Promise<void> {
  for (const quota of quotas.values()) shift(quota, -aheadMs);
  const columns = columnsOf([...quotas]);
  for (const quota of quotas.values()) shift(quota, aheadMs);
  await Promise.all([send(sql.unsafe(UPDATE, columns)), send(sql`COMMIT`)]);
}

const READ_ALL = `SELECT ${SUMMARY} FROM quotas`;
const ROWS_PER_INSERT = 1_000;
const PUT = `INSERT INTO quotas (key_id, numbers, expires_at)
  SELECT unnest(${GIVEN_IDS}), unnest(string_to_array($2, ';'))::int8[], unnest(string_to_array($3, ',')::int8[])
  ON CONFLICT (key_id) DO UPDATE SET numbers = excluded.numbers, expires_at = excluded.expires_at`;

/** Reads the quotas of all keys. */
export async function readAllQuotas(sql: SQL): Promise<KeyQuotas> {
  return [...(await select(sql, READ_ALL)).quotas];
}

export async function putQuotas(sql: SQL, quotas: KeyQuotas): Promise<void> {
  for (let from = 0; from < quotas.length; from += ROWS_PER_INSERT)
    await sql.unsafe(PUT, columnsOf(quotas.slice(from, from + ROWS_PER_INSERT)));
}

/** The parameters of a statement: the identifiers, the numbers and the expiries. */
function columnsOf(quotas: KeyQuotas): string[] {
  const numbers = quotas.map(([, quota]) => `{${toStored(quota).join(",")}}`);
  return [
    quotas.map(([id]) => id).join(","),
    numbers.join(";"),
    quotas.map(([, quota]) => expiresAt(quota)).join(","),
  ];
}

const DELETE_EXPIRED = `DELETE FROM quotas WHERE key_id IN (
  SELECT key_id FROM quotas WHERE expires_at < ${NOW} ORDER BY expires_at LIMIT ${MAX_PURGED} FOR UPDATE SKIP LOCKED)`;
