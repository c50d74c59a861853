import { Unavailable } from "../../src/api/errors.ts";
import { countAll } from "../../src/domain/key-counting.ts";
import type { Counted, KeyCounter, LimitedRequest } from "../../src/domain/ports/rate-limiter.ts";
import type { BanRules } from "../../src/domain/ban-rules.ts";
import {
  copyOf,
  expire,
  isExpired,
  newQuota,
  type OnBan,
  type Quota,
  shift,
  unban,
} from "../../src/domain/rate-limit.ts";
import { BatchQueue } from "../../src/store/sql/batch-queue.ts";
import type { Process } from "./world.ts";

interface DatabaseOptions {
  /** The clock of PostgreSQL. */
  readonly now: () => number;
  readonly rules: BanRules;
  /** Runs the work of a server in the database, a batch at a time; by default each request is decided at once. */
  readonly call?: <T>(server: Process, work: () => T) => Promise<T>;
  /** Called after each decision, with the quota by the clock of PostgreSQL and whether it is a new ban. */
  readonly onCounted?: (server: Process, counted: Counted, isNewBan: boolean) => void;
}

/** PostgreSQL, as servers count in it: one batch after the other, by the rules of the domain. */
export class SimulatedDatabase {
  readonly #quotas = new Map<number, Quota>();
  isDown = false;

  constructor(private readonly options: DatabaseOptions) {}

  counterOf(server: Process, onBan?: OnBan): KeyCounter {
    const { call = async (_, work) => work() } = this.options;
    const run = (requests: readonly LimitedRequest[]) => call(server, () => this.#count(server, requests));
    const batches = new BatchQueue({ run, maxBatch: 256, maxQueued: 10_000, scheduler: server });
    const decide = async (request: LimitedRequest) => {
      if (this.options.call) return batches.submit(request);
      const [decided] = await run([request]);
      if (decided === undefined) throw new Error("the request was not decided");
      return decided;
    };
    return {
      queueLength: 0,
      async decide(request) {
        const { isNewBan, ...counted } = await decide(request);
        const { bannedAt, bannedUntil } = counted.quota;
        if (isNewBan) onBan?.(request.keyId, { bannedAt, bannedUntil });
        return counted;
      },
      quota: (keyId) =>
        call(server, () =>
          this.#onQuota(server, keyId, (quota, now) => (isExpired(quota, now) ? undefined : copyOf(quota))),
        ),
      unban: (keyId, agoMs) =>
        call(server, () => this.#onQuota(server, keyId, (quota, now) => unban(quota, now - agoMs))),
      close: async () => {},
    };
  }

  #count(server: Process, requests: readonly LimitedRequest[]) {
    return requests.map((request) => {
      const { keyId } = request;
      const counted = this.#onQuota(server, keyId, (quota, now) => {
        const batch = countAll([request], new Map([[keyId, quota]]), now, this.options.rules);
        const [{ decision }] = batch.counted as readonly [Counted];
        return { decision, quota: copyOf(quota), isNewBan: batch.banned.size > 0 };
      });
      const quota = this.#quotas.get(keyId) ?? newQuota();
      this.options.onCounted?.(server, { ...counted, quota }, counted.isNewBan);
      return counted;
    });
  }

  /** Moves the quota to the clock of the server and back. */
  #onQuota<T>(server: Process, keyId: number, work: (quota: Quota, now: number) => T): T {
    if (this.isDown) throw new Unavailable("PostgreSQL is down");
    const quota = this.#quotas.get(keyId) ?? newQuota();
    this.#quotas.set(keyId, quota);
    const now = server.clock.steadyNow();
    const aheadMs = now - this.options.now();
    shift(quota, aheadMs);
    expire(quota, now, this.options.rules);
    const result = work(quota, now);
    shift(quota, -aheadMs);
    return result;
  }
}
