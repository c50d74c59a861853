import { Budget } from "../api/budget.ts";
import type { Actor, NewAuditEntry } from "../domain/audit.ts";
import type { Clock } from "../domain/ports.ts";
import type { Log } from "../observe/log.ts";

export interface WrongTokensOptions {
  readonly clock: Clock;
  readonly log: Log;
  /** Never rejects. */
  readonly recordAudit: (entry: NewAuditEntry) => Promise<void>;
}

/** Whoever can reach the listener can send wrong tokens: 20 an hour are 175,000 entries a year, about 20 MB. */
const ENTRIES = { max: 20, perSecond: 20 / 3_600 };

/**
 * Logs wrong tokens and writes them to the audit trail, which is kept for good: 20 an hour. The next entry has the
 * number of the others.
 */
export class WrongTokens {
  readonly #budget: Budget;

  constructor(private readonly options: WrongTokensOptions) {
    this.#budget = new Budget({ ...ENTRIES, now: () => options.clock.steadyNow() });
  }

  report(actor: Actor): void {
    const { clock, log, recordAudit } = this.options;
    this.#budget.spend((unrecorded) => {
      log.event("admin.sign-in-failed", { address: actor.name, unrecorded });
      const after = unrecorded > 0 ? { after: { unrecordedBefore: unrecorded } } : {};
      void recordAudit({ at: clock.now(), actor, action: "admin.sign-in-failed", ...after });
    });
  }
}
