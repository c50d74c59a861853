import { banEntry } from "../domain/key-entries.ts";
import type { AuditStore } from "../domain/ports/audit.ts";
import type { KeyStore } from "../domain/ports/keys.ts";
import type { Ban, OnBan } from "../domain/rate-limit.ts";
import { FailureReporter } from "../runtime/failure-reporter.ts";
import { formatTime } from "../text/formatting.ts";
import type { Log } from "../observe/log.ts";
import { repeat } from "../runtime/repeat.ts";
import { scheduler } from "../runtime/scheduler.ts";

interface BanRecorderOptions {
  readonly audit: Pick<AuditStore, "recordAuditUnless">;
  readonly keys: Pick<KeyStore, "getKey">;
  readonly log: Log;
  /** The name of this server for the audit entries. */
  readonly server: string;
}

const WRITE_EVERY_MS = 250;
/** The number of bans that wait while the database is unavailable. Each key has at most one ban at a time. */
const MAX_WAITING = 10_000;
/**
 * When to look for the entry of a ban that another server decided, which has written it by then. The time is random, so
 * that one of several servers looks first.
 */
const CHECK_AFTER_MS = { least: 2_000, most: 4_000 };

interface WaitingBan {
  readonly keyId: number;
  readonly ban: Ban;
  /** When to check whether another server has recorded the ban; undefined if this server decided it. */
  readonly checkAt?: number;
}

/** Logs each new ban and writes it to the audit trail, without delaying the request that caused it. */
export class BanRecorder {
  /** The number of bans that this server has recorded since its start. */
  count = 0;
  readonly #options: BanRecorderOptions;
  /** The bans that are not written yet, oldest first. */
  readonly #waiting = new Set<WaitingBan>();
  #lost = 0;
  readonly #writing = repeat(WRITE_EVERY_MS, async () => {
    await this.#write();
    return WRITE_EVERY_MS;
  });
  readonly #failures: FailureReporter;

  constructor(options: BanRecorderOptions) {
    this.#options = options;
    this.#failures = new FailureReporter((error) =>
      options.log.event("audit.write-failed", { action: "key.banned", error }),
    );
  }

  readonly record: OnBan = (keyId, ban) => {
    this.#report(keyId, ban);
    if (this.#waiting.size < MAX_WAITING) this.#waiting.add({ keyId, ban });
    else this.#lost++;
  };

  /**
   * Records a ban that another server decided, unless that server has done so. If the response to the deciding server
   * was lost, no server has recorded the ban.
   */
  readonly recordIfMissing: OnBan = (keyId, ban) => {
    const { least, most } = CHECK_AFTER_MS;
    const checkAt = scheduler.now() + least + scheduler.random() * (most - least);
    if (this.#waiting.size < MAX_WAITING) this.#waiting.add({ keyId, ban, checkAt });
  };

  #report(keyId: number, { bannedAt, bannedUntil }: Ban): void {
    this.count++;
    this.#options.log.event("key.banned", {
      keyId,
      bannedAt: formatTime(bannedAt),
      bannedUntil: formatTime(bannedUntil),
    });
  }

  async #write(): Promise<void> {
    const { audit, keys, server } = this.#options;
    try {
      for (const waiting of this.#waiting) {
        const { keyId, ban, checkAt } = waiting;
        const isOwn = checkAt === undefined;
        if (!isOwn && checkAt > scheduler.now()) continue;
        const { bannedAt, bannedUntil } = ban;
        const target = { kind: "key", id: BigInt(keyId) } as const;
        const by = { at: bannedAt, actor: { kind: "server", name: server } } as const;
        const entry = banEntry(keyId, await keys.getKey(keyId), { ...by, bannedUntil });
        // An attempt that failed may have recorded the entry, and so may another server while this one was paused.
        const ofBan = { action: "key.banned", target, since: bannedAt, until: bannedUntil } as const;
        const isNew = await audit.recordAuditUnless(ofBan, entry);
        if (isNew && !isOwn) this.#report(keyId, ban);
        this.#waiting.delete(waiting);
      }
      this.#failures.succeeded();
    } catch (error) {
      this.#failures.failed(error);
    }
  }

  async close(): Promise<void> {
    await this.#writing.close();
    for (const ban of this.#waiting) if (ban.checkAt !== undefined) this.#waiting.delete(ban);
    await this.#write();
    const bans = this.#waiting.size + this.#lost;
    if (bans > 0) this.#options.log.event("audit.bans-lost", { bans });
  }
}
