import { expect, onTestFinished, test } from "bun:test";
import { watchCertificate } from "../../src/observe/certificate-watch.ts";
import { createLog } from "../../src/observe/log.ts";
import { advance, useFakeTimers } from "../fake-timers.ts";
import { certificateOf } from "../http1/certificate.ts";
import { TestClock } from "../test-clock.ts";

useFakeTimers();

const DAY_MS = 86_400_000;
const START = Date.parse("2026-11-15T12:00:00Z");
const at = (days: number) => new Date(START + days * DAY_MS);
const certificate = (validTo: number, validFrom = -90) =>
  certificateOf("petstore.test", { validFrom: at(validFrom), validTo: at(validTo) });

function watch(cert: string) {
  const clock = new TestClock(START);
  const lines: string[] = [];
  const log = createLog({ format: "json", write: (line) => lines.push(line) });
  const reports = watchCertificate({ file: "server.crt", cert, clock, log });
  onTestFinished(reports.close);
  return {
    reports,
    /** The events since the last call. */
    events: () =>
      lines.splice(0).map((line) => {
        const { level, event, validFrom, validTo } = JSON.parse(line);
        return [level, event, validTo ?? validFrom].filter(Boolean).join(" ");
      }),
    async passDays(days: number) {
      clock.advance(days * DAY_MS);
      await advance(days * DAY_MS);
    },
  };
}

const warning = (days: number) => `warn tls.certificate-expires ${at(days).toISOString()}`;
const expired = (days: number) => `error tls.certificate-expired ${at(days).toISOString()}`;

test("a certificate that expires is a warning once a day from 14 days before, and an error when it has expired", async () => {
  const { events, passDays } = watch(certificate(15.5).cert);
  expect(events()).toEqual([]);
  await passDays(1);
  expect(events()).toEqual([]);
  for (let day = 2; day <= 15; day++) {
    await passDays(1);
    expect(events()).toEqual([warning(15.5)]);
  }
  await passDays(0.5 + 1 / DAY_MS);
  expect(events()).toEqual([expired(15.5)]);
  await passDays(1);
  expect(events()).toEqual([expired(15.5)]);
});

test("each certificate is judged when it is used, and no longer when another one is", async () => {
  const { reports, events, passDays } = watch(certificate(-1).cert);
  expect(events()).toEqual([expired(-1)]);
  reports.onChange(certificate(13));
  expect(events()).toEqual(["info tls.certificate-changed", warning(13)]);
  reports.onChange(certificate(400, 1));
  expect(events()).toEqual([
    "info tls.certificate-changed",
    `error tls.certificate-not-yet-valid ${at(1).toISOString()}`,
  ]);
  await passDays(1);
  expect(events()).toEqual([]);
  reports.onChange(certificate(400));
  expect(events()).toEqual(["info tls.certificate-changed"]);
});
