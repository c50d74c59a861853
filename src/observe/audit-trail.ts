import type { NewAuditEntry } from "../domain/audit.ts";
import type { AuditStore } from "../domain/ports.ts";
import type { Ban, OnBan } from "../domain/rate-limit.ts";
import { Latch } from "../api/latch.ts";
import { formatTime } from "../api/formatting.ts";
import type { Log } from "./log.ts";
import { repeat, type RepeatedWork, type ScheduledTimer, scheduler } from "../event-loop.ts";

interface BanRecorderOptions {
  readonly audit: Pick<AuditStore, "recordAudit" | "listAudit">;
  readonly log: Log;
  /** The name of this server, in the audit entries. */
  readonly server: string;
}

const RETRY_EVERY_MS = 1_000;
/** While the database is unavailable. Each key has at most one ban at a time. */
const MAX_WAITING = 10_000;
/** The server that decided a ban has written its entry by then. Random, so that of several servers one is the first. */
const CHECK_AFTER_MS = { least: 2_000, most: 4_000 };

interface WaitingBan {
  readonly keyId: number;
  readonly ban: Ban;
  /** Whether another server may have recorded it. */
  readonly isUncertain: boolean;
}

/** Logs each new ban and writes it to the audit trail, after the request that led to it. */
export class BanRecorder {
  /** Called for each ban. */
  onRecord: (() => void) | undefined;
  readonly #options: BanRecorderOptions;
  /** Oldest first. */
  readonly #waiting: WaitingBan[] = [];
  readonly #checks = new Set<ScheduledTimer>();
  #lost = 0;
  #writing = Promise.resolve();
  #isWriting = false;
  #timer: ScheduledTimer | undefined;
  /** Reports once for an outage, after which the entries are written. */
  readonly #latch: Latch;
  #isClosed = false;

  constructor(options: BanRecorderOptions) {
    this.#options = options;
    this.#latch = new Latch((error) =>
      options.log.event("audit.write-failed", { action: "key.banned", error }),
    );
  }

  readonly record: OnBan = (keyId, ban) => {
    this.#report(keyId, ban);
    this.#add({ keyId, ban, isUncertain: false });
  };

  /** For a ban that this server did not decide. If its response was lost, no server has recorded it. */
  readonly recordIfMissing: OnBan = (keyId, ban) => {
    if (this.#isClosed || this.#checks.size >= MAX_WAITING) return;
    const { least, most } = CHECK_AFTER_MS;
    const check = scheduler.setTimeout(
      () => {
        this.#checks.delete(check);
        this.#add({ keyId, ban, isUncertain: true });
      },
      least + scheduler.random() * (most - least),
    );
    check.unref();
    this.#checks.add(check);
  };

  #add(ban: WaitingBan): void {
    if (this.#waiting.length < MAX_WAITING) this.#waiting.push(ban);
    else if (!ban.isUncertain) this.#lost++;
    if (!this.#latch.isFailing) this.#write();
  }

  #report(keyId: number, { bannedAt, bannedUntil }: Ban): void {
    this.onRecord?.();
    this.#options.log.event("key.banned", {
      keyId,
      bannedAt: formatTime(bannedAt),
      bannedUntil: formatTime(bannedUntil),
    });
  }

  async #isRecorded({ keyId, ban }: WaitingBan): Promise<boolean> {
    const target = { kind: "key", id: BigInt(keyId) } as const;
    const period = { since: ban.bannedAt, until: ban.bannedUntil };
    const query = { action: "key.banned", target, ...period, limit: 1 } as const;
    return (await this.#options.audit.listAudit(query)).items.length > 0;
  }

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
      for (let next = this.#waiting[0]; next; next = this.#waiting[0]) {
        const { keyId, ban, isUncertain } = next;
        const isMissing = !isUncertain || !(await this.#isRecorded(next));
        if (isMissing) await this.#options.audit.recordAudit(this.#entry(keyId, ban));
        if (isMissing && isUncertain) this.#report(keyId, ban);
        this.#waiting.shift();
      }
      this.#latch.worked();
    } catch (error) {
      this.#latch.failed(error);
      if (!this.#isClosed) this.#timer = scheduler.setTimeout(() => this.#write(), RETRY_EVERY_MS);
    } finally {
      this.#isWriting = false;
    }
  }

  /** Tries once more to write what waits. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#timer?.close();
    for (const check of this.#checks) check.close();
    await this.#writing;
    await this.#writeAll();
    const bans = this.#waiting.filter(({ isUncertain }) => !isUncertain).length + this.#lost;
    if (bans > 0) this.#options.log.event("audit.bans-lost", { bans });
  }
}

const DELETE_EVERY_MS = 600_000;
/** Between two transactions while there is more to delete. */
const PAUSE_MS = 100;

/**
 * Deletes old data every ten minutes, some at a time, so that no request waits for long. `deleteSome` resolves to
 * whether there is more. After an error, the next attempt is ten minutes later.
 */
export function deleteRegularly(
  deleteSome: () => Promise<boolean>,
  onError: (error: unknown) => void,
): RepeatedWork {
  return repeat(PAUSE_MS, async () => {
    try {
      return (await deleteSome()) ? PAUSE_MS : DELETE_EVERY_MS;
    } catch (error) {
      onError(error);
      return DELETE_EVERY_MS;
    }
  });
}
