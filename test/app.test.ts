import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { TlsCertificate } from "../src/http1/index.ts";
import { maxConnectionsWithin } from "../src/http1/connection-limits.ts";
import { createLog } from "../src/observe/log.ts";
import { ADMIN_CONFIG } from "./admin/admin-service.ts";
import { certificateOf } from "./http1/certificate.ts";
import { temporaryDirectory } from "../trials/harness/cleanup.ts";
import { startService } from "./service.ts";
import { until } from "./timing.ts";

/** A log whose events can be read, without their times. */
function recordingLog() {
  const events: Record<string, unknown>[] = [];
  const log = createLog({
    format: "json",
    write(line) {
      const { time: _time, ...event } = JSON.parse(line);
      events.push(event);
    },
  });
  return { log, named: (name: string) => events.filter(({ event }) => event === name) };
}

test.each([10, 1_000_000_000])(
  "a server with --max-connections %i says if fewer are possible",
  async (maxConnections) => {
    const { log, named } = recordingLog();
    await using _ = await startService({ maxConnections }, log);
    const possible = maxConnectionsWithin(maxConnections);
    expect(named("connections.limit-lowered")).toMatchObject(
      possible < maxConnections ? [{ maxConnections: possible }] : [],
    );
  },
);

test("an earlier state of the database is an event, and new changes are none", async () => {
  const { log, named } = recordingLog();
  await using service = await startService({}, log);
  const revise = (change: number) => {
    using database = new Database(join(service.dataDir, "production.db"));
    database.run("UPDATE key_revision SET revision = revision + ?", [change]);
    return database.query<{ revision: number }, []>("SELECT revision FROM key_revision").get()?.revision;
  };
  const lost = () => named("database.changes-lost");
  const { id } = await service.newKey();
  await until(() => named("key.changed").some(({ keyId }) => keyId === id), 5_000);
  expect(lost()).toEqual([]);
  const revision = revise(-1) ?? 0;
  await until(() => lost().length > 0, 5_000);
  expect(lost()).toMatchObject([{ revision, revisionBefore: revision + 1 }]);
});

test.each([
  ["off", undefined, null],
  ["on", ADMIN_CONFIG, expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+$/)],
])("other servers see that the listener for operators is %s", async (_, admin, adminUrl) => {
  await using service = await startService({ admin });
  using database = new Database(join(service.dataDir, "production.db"), { readonly: true });
  const [row] = database.query<{ report: string }, []>("SELECT report FROM servers").all();
  expect(JSON.parse(row?.report ?? "{}")).toMatchObject({ adminUrl });
});

test("a server with a certificate serves HTTPS, and follows its files until it is closed", async () => {
  const { log, named } = recordingLog();
  const directory = temporaryDirectory("app-tls");
  const tls = { certFile: join(directory, "a.crt"), keyFile: join(directory, "a.key") };
  const use = ({ cert, key }: TlsCertificate) => {
    writeFileSync(tls.certFile, cert);
    writeFileSync(tls.keyFile, key);
  };
  use(certificateOf("first"));
  await using service = await startService({ tls }, log);
  expect(service.url).toStartWith("https://127.0.0.1:");
  const response = await fetch(new URL("/healthz", service.url), { tls: { rejectUnauthorized: false } });
  expect([response.status, response.headers.get("Strict-Transport-Security")]).toEqual([
    200,
    "max-age=31536000",
  ]);
  use(certificateOf("second"));
  await until(() => named("tls.certificate-changed").length > 0, 5_000);
  expect(named("tls.certificate-changed")).toMatchObject([{ file: tls.certFile }]);
  expect(named("tls.certificate-incomplete")).toEqual([]);
});
