import type { NewAuditEntry } from "./domain/audit.ts";
import type { AuditStore } from "./domain/ports.ts";
import type { Ban, OnBan } from "./domain/rate-limit.ts";
import { formatTime } from "./contract/formatting.ts";
import type { Log } from "./log.ts";

export interface BanRecorderOptions {
  readonly audit: Pick<AuditStore, "recordAudit">;
  readonly log: Log;
  /** The name of this server, in the audit entries. */
  readonly server: string;
}

const RETRY_EVERY_MS = 1_000;
/** While the database is unavailable. Each key has at most one ban at a time. */
const MAX_WAITING = 10_000;

/** Logs each new ban and writes it to the audit trail, after the request that led to it. */
export class BanRecorder {
  /** Called for each ban. */
  onRecord: (() => void) | undefined;
  readonly #options: BanRecorderOptions;
  /** Oldest first. */
  readonly #waiting: NewAuditEntry[] = [];
  #lost = 0;
  #writing = Promise.resolve();
  #isWriting = false;
  #timer: Timer | undefined;
  #isFailing = false;
  #isClosed = false;

  constructor(options: BanRecorderOptions) {
    this.#options = options;
  }

  readonly record: OnBan = (keyId, ban) => {
    this.onRecord?.();
    this.#options.log.event("key.banned", {
      keyId,
      bannedAt: formatTime(ban.bannedAt),
      bannedUntil: formatTime(ban.bannedUntil),
    });
    if (this.#waiting.length < MAX_WAITING) this.#waiting.push(this.#entry(keyId, ban));
    else this.#lost++;
    if (!this.#isFailing) this.#write();
  };

  #entry(keyId: number, { bannedAt, bannedUntil }: Ban): NewAuditEntry {
    return {
      at: bannedAt,
      actor: { kind: "server", name: this.#options.server },
      action: "key.banned",
      target: { kind: "key", id: BigInt(keyId) },
      after: { bannedUntil: formatTime(bannedUntil) },
    };
  }

  #write(): void {
    if (!this.#isWriting) this.#writing = this.#writeAll();
  }

  async #writeAll(): Promise<void> {
    this.#isWriting = true;
    try {
      for (let entry = this.#waiting[0]; entry; entry = this.#waiting[0]) {
        await this.#options.audit.recordAudit(entry);
        this.#waiting.shift();
      }
      this.#isFailing = false;
    } catch (error) {
      // Once for an outage, after which the entries are written.
      if (!this.#isFailing) this.#options.log.event("audit.write-failed", { action: "key.banned", error });
      this.#isFailing = true;
      if (!this.#isClosed) this.#timer = setTimeout(() => this.#write(), RETRY_EVERY_MS);
    } finally {
      this.#isWriting = false;
    }
  }

  /** Tries once more to write what waits. */
  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    await this.#writing;
    await this.#writeAll();
    const bans = this.#waiting.length + this.#lost;
    if (bans > 0) this.#options.log.event("audit.bans-lost", { bans });
  }
}
