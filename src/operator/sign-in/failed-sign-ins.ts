import { TokenBucket } from "../../runtime/token-bucket.ts";
import type { Actor, AuditedValues } from "../../domain/audit.ts";
import type { AuditStore } from "../../domain/ports/audit.ts";
import type { Clock } from "../../domain/ports/clock.ts";
import type { Log } from "../../observe/log.ts";

/** The limit for reports. 20 an hour make 175,000 entries a year, about 20 MB. */
const REPORTS = { max: 20, perSecond: 20 / 3_600 };

interface Options {
  readonly clock: Clock;
  readonly log: Log;
  readonly audit: Pick<AuditStore, "recordAudit">;
}

/**
 * Reports failed sign-ins in the log and in the audit trail: 20 an hour, because anybody who can reach the listener can
 * cause them, and the trail keeps them for long. The next entry has the number of those that were suppressed.
 */
export class FailedSignIns {
  readonly #options: Options;
  readonly #reports: TokenBucket;

  constructor(options: Options) {
    this.#options = options;
    this.#reports = new TokenBucket({ ...REPORTS, now: () => options.clock.steadyNow() });
  }

  report(actor: Actor, { reason, ...values }: AuditedValues = {}): void {
    const { clock, log, audit } = this.#options;
    const action = "admin.sign-in-failed";
    this.#reports.reportOrCount((unrecorded) => {
      log.event(action, { address: actor.name, unrecorded, reason });
      const after = {
        ...(reason !== undefined && { reason }),
        ...values,
        ...(unrecorded > 0 && { unrecordedBefore: unrecorded }),
      };
      const isEmpty = Object.keys(after).length === 0;
      const entry = { at: clock.now(), actor, action, ...(!isEmpty && { after }) } as const;
      void audit.recordAudit(entry).catch((error) => log.event("audit.write-failed", { action, error }));
    });
  }
}
