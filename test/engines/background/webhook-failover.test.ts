import { expect, test } from "bun:test";
import { Unavailable } from "../../../src/api/errors.ts";
import { webhookSecrets } from "../../../src/config/value-types.ts";
import type { AuditAction } from "../../../src/domain/audit.ts";
import { silentLog } from "../../../src/observe/log.ts";
import { WebhookSender } from "../../../src/background/webhook-delivery.ts";
import { openPostgres } from "../../../src/store/postgres/open-postgres.ts";
import { promote, startPostgres, startStandby } from "../../../trials/harness/postgres.ts";
import { startReceiver, WEBHOOK_SECRET } from "../../../trials/harness/webhook-receiver.ts";
import { until } from "../../timing.ts";

const hostOf = ({ url }: { readonly url: string }) => new URL(url).host;

test("after the promotion of a standby that lacks the last deliveries, every entry that it gets is delivered, in order", async () => {
  await using stack = new AsyncDisposableStack();
  const receiver = stack.use(startReceiver());
  const primary = await startPostgres();
  stack.defer(() => primary.stop());
  const standby = await startStandby(primary, { isSynchronous: false });
  stack.defer(() => standby.stop());
  const both = primary.url.replace(/@([^/]+)/, `@${hostOf(primary)},${hostOf(standby)}`);
  const stores = await openPostgres(both);
  stack.defer(() => stores.close());
  const { audit, webhooks } = stores;
  await webhooks.openWebhook("source");
  // The sender stands still during the failover, so no error makes it read its position again.
  let failover = Promise.resolve();
  const sender = new WebhookSender({
    ...stores,
    audit: { listAudit: async (query) => failover.then(() => audit.listAudit(query)) },
    url: receiver.url,
    secrets: () => webhookSecrets.parse(WEBHOOK_SECRET) ?? [],
    events: ["*"],
    environment: "production",
    isOnlyServer: false,
    server: "one",
    clock: { now: () => Date.now() },
    retentionNow: () => Date.now(),
    log: silentLog,
    times: { pollMs: 20, beatMs: 500, retryFactor: 0.01 },
  });
  stack.defer(() => sender.close());
  const record = async (action: AuditAction, count: number) => {
    for (let recorded = 0; recorded < count;)
      try {
        await audit.recordAudit({ at: Date.now(), actor: { kind: "server" }, action });
        recorded++;
      } catch (error) {
        if (!(error instanceof Unavailable)) throw error;
        await Bun.sleep(20);
      }
  };
  const delivered = (action: AuditAction) =>
    receiver.received.flatMap(({ type, entry }) => (type === action ? (entry ?? []) : []));

  await record("key.created", 3);
  await receiver.when(() => delivered("key.created").length >= 3);
  await until(async () => sender.waiting?.count === 0, 10_000);
  // The standby is away, and the primary does not wait for it.
  await standby.kill();
  // PostgreSQL continues 32 identifiers after the last that a standby has, so more have to be lost.
  await record("key.updated", 60);
  await receiver.when(() => delivered("key.updated").length >= 60);
  await until(async () => sender.waiting?.count === 0, 10_000);
  const { promise, resolve } = Promise.withResolvers<void>();
  failover = promise;
  await primary.kill();
  await standby.restart();
  await promote(standby);
  await record("key.banned", 9);
  resolve();
  const kept = async () => {
    const { items } = await audit.listAudit({ action: "key.banned", after: 0n, limit: 100 });
    return items.map(({ id }) => Number(id));
  };
  await until(async () => new Set(delivered("key.banned")).size >= (await kept()).length, 30_000);
  expect([...new Set(delivered("key.banned"))]).toEqual(await kept());
}, 120_000);
