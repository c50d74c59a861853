import { expect, test } from "bun:test";
import { hostname } from "node:os";
import { startApp } from "../../src/app.ts";
import { createLog } from "../../src/observe/log.ts";
import { openSqlite } from "../../src/store/sqlite/open-sqlite.ts";
import { temporaryDirectory } from "../../trials/harness/cleanup.ts";
import { bearer } from "../bearer.ts";
import { BY } from "../key-store-arguments.ts";
import { addKey, configIn, remainingOf, TestClock, useService } from "../service.ts";
import { until } from "../timing.ts";
import { sendRaw } from "./raw.ts";

const service = await useService();

const list = (key: string) => service.call({ path: "/pets?limit=1", key });

test.each([
  ["free", 60, undefined],
  ["pro", 300, undefined],
  ["business", 1_000, undefined],
  ["enterprise", 77, { perMinute: 77, perDay: 90 }],
] as const)("%s: of 50 requests too many at once, exactly %d are allowed", async (plan, allowed, limits) => {
  const { secret } = await service.newKey({ plan, limits: limits as never });
  const responses = await Promise.all(Array.from({ length: allowed + 50 }, () => list(secret)));
  expect(responses.filter(({ status }) => status === 429)).toHaveLength(50);
  const remaining = responses.filter(({ status }) => status === 200).map(remainingOf);
  expect(remaining.toSorted((a, b) => a - b)).toEqual(Array.from({ length: allowed }, (_, i) => i));
});

test("a request that is not valid HTTP does not count", async () => {
  const before = remainingOf(await list(service.key));
  const malformed = `GET /v1/pets HTTP/1.1\r\nHost:\r\nAuthorization: Bearer ${service.key}\r\n\r\n`;
  expect(await sendRaw(service.url, malformed)).toStartWith("HTTP/1.1 400 ");
  expect(remainingOf(await list(service.key))).toBe(before - 1);
});

test("a 429 warns of a ban from the first strike on, until the window closes", async () => {
  const { secret } = await service.newKey({ limits: { perMinute: 1, perDay: 1_000 } });
  const messages: unknown[] = [];
  for (const afterMs of [0, 0, 1_000, 1, 57_999, 1_000, 0]) {
    service.clock.advance(afterMs);
    messages.push(Object((await list(secret)).json)["message"]);
  }
  const limited = (seconds: string) =>
    `Too many requests: the limit is 1 request a minute. Retry after ${seconds}.`;
  const warning = " Requests before then may lead to a ban.";
  expect(messages).toEqual([
    undefined,
    limited("60 seconds"),
    limited("59 seconds"),
    limited("59 seconds") + warning,
    limited("1 second") + warning,
    undefined,
    limited("60 seconds"),
  ]);
});

test("a ban is one event, one in the metrics and one audit entry, before a stop ends; an unban is an event", async () => {
  const lines: { event: string }[] = [];
  const log = createLog({ format: "json", write: (line) => void lines.push(JSON.parse(line)) });
  const events = (name: string) => lines.filter(({ event }) => event === name);
  const clock = new TestClock();
  const config = configIn(temporaryDirectory("http"));
  const app = await startApp(config, { clock, log });
  const { id, secret } = await addKey(app.keys, { limits: { perMinute: 1, perDay: 1_000 } });
  for (let i = 0; i < 14; i++) {
    await fetch(`${app.url}/pets`, { headers: bearer(secret) });
    if (i > 0 && i < 11) clock.advance(1_001);
  }
  const at = clock.now();
  const bannedUntil = new Date(at + 300_000).toISOString();
  expect(events("key.banned")).toMatchObject([{ level: "warn", keyId: id, bannedUntil }]);
  expect(app.metrics.expose()).toContain("\npetstore_bans_total 1\n");
  await app.close();
  const { audit, close } = openSqlite(config.data.directory.files.database);
  const { items } = await audit.listAudit({ action: "key.banned", limit: 10 });
  await close();
  const actor = { kind: "server", name: hostname() } as const;
  expect(items).toMatchObject([
    { at, actor, target: { kind: "key", id: BigInt(id) }, after: { bannedUntil } },
  ]);

  const again = await startApp(config, { clock, log });
  expect(events("key.unbanned")).toEqual([]);
  await again.keys.updateKey(id, { unbannedAt: at }, BY);
  await until(() => events("key.unbanned").length > 0, 1_000);
  expect(events("key.unbanned")).toMatchObject([{ level: "info", keyId: id }]);
  await again.close();
});
