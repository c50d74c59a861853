import type { Actor, NewAuditEntry } from "../domain/audit.ts";
import type { Clock } from "../domain/ports.ts";
import type { Log } from "../observe/log.ts";

export interface WrongTokensOptions {
  readonly clock: Clock;
  readonly log: Log;
  /** Never rejects. */
  readonly recordAudit: (entry: NewAuditEntry) => Promise<void>;
}

/** Whoever can reach the listener can send wrong tokens: at most 175,000 entries a year, about 20 MB. */
const MAX_ENTRIES = 20;
const PERIOD_MS = 3_600_000;

/**
 * Logs wrong tokens and writes them to the audit trail, which is kept for good: 20 in an hour. The next entry has the
 * number of the others.
 */
export class WrongTokens {
  #entries = 0;
  #unrecorded = 0;
  /** By the steady clock. */
  #periodEndsAt = 0;

  constructor(private readonly options: WrongTokensOptions) {}

  report(actor: Actor): void {
    const { clock, log, recordAudit } = this.options;
    const now = clock.steadyNow();
    if (now >= this.#periodEndsAt) {
      this.#periodEndsAt = now + PERIOD_MS;
      this.#entries = 0;
    }
    if (this.#entries >= MAX_ENTRIES) {
      this.#unrecorded++;
      return;
    }
    this.#entries++;
    const unrecorded = this.#unrecorded;
    this.#unrecorded = 0;
    log.event("admin.sign-in-failed", { address: actor.name, unrecorded });
    const after = unrecorded > 0 ? { after: { unrecordedBefore: unrecorded } } : {};
    void recordAudit({ at: clock.now(), actor, action: "admin.sign-in-failed", ...after });
  }
}
