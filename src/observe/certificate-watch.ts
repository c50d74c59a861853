import { X509Certificate } from "node:crypto";
import type { Clock } from "../domain/ports/clock.ts";
import { validityOf } from "../domain/certificate-validity.ts";
import { type ScheduledTimer, scheduler } from "../runtime/scheduler.ts";
import { DAY_MS } from "../text/time-units.ts";
import type { Log } from "./log.ts";

interface WatchOptions {
  readonly file: string;
  /** The certificate that is used at first, in PEM. */
  readonly cert: string;
  readonly clock: Pick<Clock, "now">;
  readonly log: Pick<Log, "event">;
}

/**
 * Logs what happens to the files of the certificate, and that clients reject the certificate or will do so soon: at the
 * start, when another one is used, once a day, and when it expires.
 */
export function watchCertificate({ file, cert, clock, log }: WatchOptions) {
  let timer: ScheduledTimer | undefined;
  const close = () => timer?.close();

  function check(certificate: X509Certificate): void {
    const now = clock.now();
    const { validFromDate, validToDate } = certificate;
    const [validFrom, validTo] = [validFromDate.toISOString(), validToDate.toISOString()];
    const validity = validityOf(certificate, now);
    if (validity === "expired") log.event("tls.certificate-expired", { file, validTo });
    else if (validity === "expires soon") log.event("tls.certificate-expires", { file, validTo });
    else if (validity === "not yet valid") log.event("tls.certificate-not-yet-valid", { file, validFrom });
    const leftMs = validToDate.getTime() - now;
    timer = scheduler.setTimeout(
      () => check(certificate),
      leftMs < 0 ? DAY_MS : Math.min(leftMs + 1, DAY_MS),
    );
    timer.unref();
  }

  check(new X509Certificate(cert));
  return {
    onChange(changed: Pick<WatchOptions, "cert">) {
      log.event("tls.certificate-changed", { file });
      close();
      check(new X509Certificate(changed.cert));
    },
    onIncomplete: (error: unknown) => log.event("tls.certificate-incomplete", { error }),
    onInvalid: (error: unknown) => log.event("tls.certificate-invalid", { error }),
    close,
  };
}
