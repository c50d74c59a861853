import { banEntry } from "../domain/key-entries.ts";
import type { AuditStore } from "../domain/ports/audit.ts";
import type { KeyStore } from "../domain/ports/keys.ts";
import type { Ban, OnBan } from "../domain/rate-limit.ts";
import { FailureReporter } from "../runtime/failure-reporter.ts";
import { formatTime } from "../text/formatting.ts";
import type { Log } from "../observe/log.ts";
import { repeat } from "../runtime/repeat.ts";

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
interface WaitingBan {
  readonly keyId: number;
  readonly ban: Ban;
}

/** Logs each new ban and, on SQLite, writes it to the audit trail, without delaying the request that caused it. */
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
    this.report(keyId, ban);
    if (this.#waiting.size < MAX_WAITING) this.#waiting.add({ keyId, ban });
    else this.#lost++;
  };

  /** Logs a ban whose entry is in the audit trail. */
  readonly report: OnBan = (keyId, { bannedAt, bannedUntil }) => {
    this.count++;
    this.#options.log.event("key.banned", {
      keyId,
      bannedAt: formatTime(bannedAt),
      bannedUntil: formatTime(bannedUntil),
    });
  };

  async #write(): Promise<void> {
    const { audit, keys, server } = this.#options;
    try {
      for (const waiting of this.#waiting) {
        const { keyId, ban } = waiting;
        const { bannedAt, bannedUntil } = ban;
        const target = { kind: "key", id: BigInt(keyId) } as const;
        const by = { at: bannedAt, actor: { kind: "server", name: server } } as const;
        const entry = banEntry(keyId, await keys.getKey(keyId), { ...by, bannedUntil });
        // An attempt that failed may have recorded the entry.
        const ofBan = { action: "key.banned", target, since: bannedAt, until: bannedUntil } as const;
        await audit.recordAuditUnless(ofBan, entry);
        this.#waiting.delete(waiting);
      }
      this.#failures.succeeded();
    } catch (error) {
      this.#failures.failed(error);
    }
  }

  async close(): Promise<void> {
    await this.#writing.close();
    await this.#write();
    const bans = this.#waiting.size + this.#lost;
    if (bans > 0) this.#options.log.event("audit.bans-lost", { bans });
  }
}
