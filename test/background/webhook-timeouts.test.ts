import { expect, test } from "bun:test";
import { webhookSecrets } from "../../src/config/value-types.ts";
import { createLog } from "../../src/observe/log.ts";
import { WebhookSender } from "../../src/background/webhook-delivery.ts";
import { openSqlite } from "../../src/store/sqlite/open-sqlite.ts";
import { startReceiver, WEBHOOK_SECRET } from "../../trials/harness/webhook-receiver.ts";
import { disposableDirectory } from "../disposable-directory.ts";
import { advance, finish, useFakeTimers } from "../fake-timers.ts";
import { TestClock } from "../test-clock.ts";

useFakeTimers();

/** A sender with its own times, whose receiver never responds. */
async function openSender() {
  const opened = new AsyncDisposableStack();
  const directory = opened.use(disposableDirectory());
  const receiver = opened.use(startReceiver(() => "hang"));
  const stores = openSqlite(directory.path("a.db"));
  opened.defer(() => finish(stores.close()));
  const clock = new TestClock();
  const failing = Promise.withResolvers<unknown>();
  const log = createLog({
    format: "json",
    write(line) {
      const event = JSON.parse(line);
      if (event.event === "webhook.failing") failing.resolve(event);
    },
  });
  const sender = new WebhookSender({
    ...stores,
    url: receiver.url,
    secrets: () => webhookSecrets.parse(WEBHOOK_SECRET) ?? [],
    events: ["*"],
    environment: "production",
    isOnlyServer: true,
    server: "one",
    clock,
    retentionNow: () => clock.now(),
    log,
  });
  opened.defer(() => finish(sender.close()));
  const received = () => receiver.when(() => receiver.received.length === 1);
  return {
    ...stores,
    clock,
    sender,
    received,
    failed: failing.promise,
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
}

test("a test event without a response fails after 5 seconds", async () => {
  await using opened = await openSender();
  const tested = opened.sender.test();
  await opened.received();
  await advance(5_000);
  expect(await tested).toMatchObject({ error: "no response within 5 seconds", durationMs: 5_000 });
});

test("a delivery without a response fails after 10 seconds", async () => {
  await using opened = await openSender();
  const { audit, clock, received, failed } = opened;
  await advance(0);
  const actor = { kind: "server", name: "web-1" } as const;
  await finish(audit.recordAudit({ at: clock.now(), actor, action: "key.banned" }));
  await advance(1_000);
  await received();
  await advance(10_000);
  expect(await failed).toMatchObject({ error: "no response within 10 seconds", durationMs: 10_000 });
});
