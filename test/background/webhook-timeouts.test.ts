import { expect, spyOn, test } from "bun:test";
import { webhookSecrets } from "../../src/config/value-types.ts";
import { WebhookSender } from "../../src/background/webhook-delivery.ts";
import type { AuditEntry } from "../../src/domain/audit.ts";
import type { WebhookStore } from "../../src/domain/ports/webhooks.ts";
import type { WebhookState } from "../../src/domain/webhooks.ts";
import { createLog, silentLog } from "../../src/observe/log.ts";
import { scheduler } from "../../src/runtime/scheduler.ts";
import { openSqlite } from "../../src/store/sqlite/open-sqlite.ts";
import { startReceiver, WEBHOOK_SECRET } from "../../trials/harness/webhook-receiver.ts";
import { disposableDirectory } from "../disposable-directory.ts";
import { advance, finish, settle, useFakeTimers } from "../fake-timers.ts";
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

interface Shared {
  readonly isOnlyServer?: boolean;
  readonly url?: string;
  readonly entries?: readonly AuditEntry[];
}

/** A sender with a state in memory. By default there are other servers, and nothing is to be delivered. */
function openShared(
  first: Partial<WebhookState>,
  { isOnlyServer = false, url = "http://127.0.0.1:1/", entries = [] }: Shared = {},
) {
  const shared = { state: { source: "a", position: 0n, beat: 1, deliveries: [], ...first } as WebhookState };
  const counts = { read: 0, taken: 0, saved: 0 };
  const next = async (server: string, state: WebhookState, count: "taken" | "saved") => {
    counts[count]++;
    return (shared.state = { ...state, server, beat: state.beat + 1 });
  };
  const webhooks: WebhookStore = {
    openWebhook: async () => shared.state,
    readWebhook: () => shared.state,
    takeWebhook: (server, state) => next(server, state, "taken"),
    saveWebhook: (server, state) => next(server, state, "saved"),
    releaseWebhook: async () => {},
    countWaiting: () => ({ count: 0 }),
  };
  const sender = new WebhookSender({
    url,
    secrets: () => [],
    events: ["*"],
    environment: "production",
    webhooks,
    isOnlyServer,
    server: "one",
    clock: new TestClock(),
    retentionNow: () => 0,
    log: silentLog,
    audit: {
      async listAudit() {
        counts.read++;
        return { items: entries, hasMore: false };
      },
    },
  });
  /** What has happened after each of so many seconds. */
  const pass = async (seconds: number) => {
    for (let second = 0; second < seconds; second++) await advance(1_000);
    return { ...counts };
  };
  return { shared, pass, sender };
}

test("the server that delivers looks for entries each second, and each ten seconds shows that it does", async () => {
  const { pass, sender } = openShared({});
  await advance(0);
  expect(await pass(9)).toEqual({ read: 10, taken: 1, saved: 0 });
  expect(await pass(1)).toEqual({ read: 11, taken: 1, saved: 1 });
  expect(await pass(10)).toEqual({ read: 21, taken: 1, saved: 2 });
  await advance(999);
  expect(await pass(0)).toMatchObject({ read: 21 });
  expect(sender.waiting).toEqual({ count: 0 });
  await sender.close();
});

test("the only server of a database shows nobody that it delivers", async () => {
  const { pass, sender } = openShared({ server: "gone" }, { isOnlyServer: true });
  await advance(0);
  expect(await pass(30)).toEqual({ read: 31, taken: 1, saved: 0 });
  await sender.close();
});

test("a server that has not shown for 30 seconds that it delivers is replaced", async () => {
  const { shared, pass, sender } = openShared({ server: "other" });
  await advance(0);
  expect(await pass(29)).toMatchObject({ taken: 0 });
  shared.state = { ...shared.state, beat: 2 };
  expect(await pass(30)).toMatchObject({ taken: 0 });
  expect(await pass(1)).toMatchObject({ taken: 1 });
  await sender.close();
});

test("a receiver that fails gets an entry again after a second and then after two, if chance adds most", async () => {
  using random = spyOn(scheduler, "random").mockReturnValue(1);
  await using receiver = startReceiver(() => new Response(null, { status: 500 }));
  const entry = { id: 1n, at: 0, actor: { kind: "server" }, action: "key.banned" } as const;
  const { sender, shared } = openShared({}, { isOnlyServer: true, url: receiver.url, entries: [entry] });
  const failed = async (count: number) => {
    await receiver.when(() => receiver.received.length === count);
    while (shared.state.deliveries.length < count) await settle();
    await settle();
  };
  await advance(0);
  await failed(1);
  await advance(1_000);
  await failed(2);
  await advance(1_999);
  expect(receiver.received).toHaveLength(2);
  random.mockReturnValue(0);
  await advance(1);
  await failed(3);
  await advance(1_999);
  expect(receiver.received).toHaveLength(3);
  await advance(1);
  await failed(4);
  expect(sender.counts).toEqual({ delivered: 0, failed: 4, skipped: 0 });
  await sender.close();
});
