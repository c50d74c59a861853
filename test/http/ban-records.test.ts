import { afterEach, expect, test } from "bun:test";
import { hostname } from "node:os";
import { type Adapters, openAdapters } from "../../src/adapters.ts";
import { type App, serveOn } from "../../src/app.ts";
import { generateSecret, toNewSecret } from "../../src/domain/api-keys.ts";
import { createLog } from "../../src/observe/log.ts";
import { temporaryFolder } from "../../trials/harness/cleanup.ts";
import { BY } from "../key-store-arguments.ts";
import { configIn, TestClock } from "../service.ts";

let app: App | undefined;
afterEach(() => app?.close());

async function start() {
  const lines: { event: string }[] = [];
  const log = createLog({ format: "json", write: (line) => void lines.push(JSON.parse(line)) });
  const clock = new TestClock();
  const config = configIn(temporaryFolder("http"));
  const adapters = await openAdapters(config, clock, log);
  const secret = generateSecret("production");
  const limits = { perMinute: 1, perDay: 1_000 };
  const key = { name: "test", plan: "enterprise", limits, createdAt: clock.now() } as const;
  const { id } = await adapters.keys.createKey(key, toNewSecret(secret), BY);
  app = await serveOn(adapters, config, { clock, log });
  const events = (name: string) => lines.filter(({ event }) => event === name);
  return { app, adapters, clock, id, secret, events };
}

async function getBanned({
  app,
  clock,
  secret,
}: {
  app: App;
  clock: TestClock;
  secret: string;
}): Promise<void> {
  for (let i = 0; i < 14; i++) {
    await fetch(`${app.url}/pets`, { headers: { Authorization: `Bearer ${secret}` } });
    if (i === 1) clock.advance(1_001);
  }
}

const bansOf = async ({ audit }: Adapters) =>
  (await audit.listAudit({ action: "key.banned", limit: 10 })).items;

test("a ban is one event, one audit entry by the server and one in the metrics; an unban is an event", async () => {
  const started = await start();
  const { app, adapters, clock, id, events } = started;
  await getBanned(started);
  const at = clock.now();
  const bannedUntil = new Date(at + 300_000).toISOString();
  expect(events("key.banned")).toMatchObject([{ level: "warn", keyId: id, bannedUntil }]);
  await until(async () => (await bansOf(adapters)).length > 0);
  expect(await bansOf(adapters)).toMatchObject([
    {
      at,
      actor: { kind: "server", name: hostname() },
      action: "key.banned",
      target: { kind: "key", id: BigInt(id) },
      after: { bannedUntil },
    },
  ]);
  expect(app.metrics.requests.bans).toBe(1);

  expect(events("key.unbanned")).toEqual([]);
  await adapters.keys.updateKey(id, { unbannedAt: clock.now() }, BY);
  await until(async () => events("key.unbanned").length > 0);
  expect(events("key.unbanned")).toMatchObject([{ level: "info", keyId: id }]);
});

test("the audit entry of a ban is written before a stop ends", async () => {
  const started = await start();
  await getBanned(started);
  const { adapters } = started;
  const recorded: unknown[] = [];
  const { recordAudit } = adapters.audit;
  adapters.audit.recordAudit = async (entry) => {
    await recordAudit.call(adapters.audit, entry);
    recorded.push(entry);
  };
  started.clock.advance(300_000);
  await getBanned(started);
  await app?.close();
  app = undefined;
  expect(recorded).toMatchObject([{ action: "key.banned" }]);
});

async function until(isTrue: () => Promise<boolean>): Promise<void> {
  const deadline = performance.now() + 30_000;
  while (!(await isTrue())) {
    if (performance.now() > deadline) throw new Error("it did not happen");
    await Bun.sleep(10);
  }
}
