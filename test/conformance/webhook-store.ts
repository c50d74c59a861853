import { expect } from "bun:test";
import type { NewAuditEntry } from "../../src/domain/audit.ts";
import type { WebhookDelivery } from "../../src/domain/webhooks.ts";
import { AT, type TestCase } from "./store-fixture.ts";

const entry = (action: NewAuditEntry["action"], at = AT): NewAuditEntry => ({
  at,
  actor: { kind: "server" },
  action,
});
const delivery: WebhookDelivery = {
  id: 1,
  type: "key.banned",
  at: AT,
  status: 200,
  error: null,
  durationMs: 3,
};

/** What every WebhookStore does, on whatever database. */
export function webhookStoreConformance(test: TestCase): void {
  test("openWebhook: the delivery begins at the end of the audit trail, once for all processes", async (opened) => {
    const { webhooks, audit, another } = opened;
    expect(await webhooks.readWebhook()).toBeUndefined();
    await audit.recordAudit(entry("key.created"));
    await audit.recordAudit(entry("key.banned"));
    const state = await webhooks.openWebhook("first");
    expect(state).toStrictEqual({ source: "first", position: 2n, beat: 0, deliveries: [] });
    await audit.recordAudit(entry("key.banned"));
    expect(await (await another()).webhooks.openWebhook("second")).toStrictEqual(state);
    expect(await webhooks.readWebhook()).toStrictEqual(state);
  });

  test("openWebhook: after a restore, the delivery begins with its entry", async ({ webhooks, audit }) => {
    await audit.recordAudit(entry("data.restored", AT - 2));
    await audit.recordAudit(entry("data.restored", AT - 1));
    await audit.recordAudit(entry("key.revoked"));
    expect((await webhooks.openWebhook("source", AT - 1)).position).toBe(1n);
  });

  test("openWebhook: an old restore does not count", async ({ webhooks, audit }) => {
    await audit.recordAudit(entry("data.restored", AT - 1));
    expect((await webhooks.openWebhook("source", AT)).position).toBe(1n);
  });

  test("takeWebhook: of servers that have seen the same state, one delivers, and only that one can save", async (opened) => {
    const stores = [opened.webhooks, (await opened.another()).webhooks, (await opened.another()).webhooks];
    const [webhooks = opened.webhooks] = stores;
    const state = await webhooks.openWebhook("source");
    const taken = await Promise.all(stores.map((store, n) => store.takeWebhook(`server ${n}`, state)));
    expect(taken.filter(Boolean)).toHaveLength(1);
    const winner = taken.findIndex(Boolean);
    expect(taken[winner]).toStrictEqual({ ...state, server: `server ${winner}`, beat: 1 });
    const progress = { ...state, beat: 1, position: 7n, deliveries: [delivery] };
    const saved = { ...progress, server: `server ${winner}`, beat: 2 };
    for (const [n, store] of stores.entries())
      expect(await store.saveWebhook(`server ${n}`, progress)).toEqual(n === winner ? saved : undefined);
    expect(await webhooks.readWebhook()).toStrictEqual(saved);
  });

  test("a server whose state has changed since is not replaced; one that has stopped is", async ({
    webhooks,
  }) => {
    await webhooks.takeWebhook("a", await webhooks.openWebhook("source"));
    const seen = await webhooks.openWebhook("source");
    await webhooks.saveWebhook("a", seen);
    expect(await webhooks.takeWebhook("b", seen)).toBeUndefined();
    await webhooks.releaseWebhook("b");
    expect((await webhooks.readWebhook())?.server).toBe("a");
    await webhooks.releaseWebhook("a");
    expect(await webhooks.saveWebhook("a", { ...seen, beat: seen.beat + 1 })).toBeUndefined();
    const released = await webhooks.openWebhook("source");
    expect(released.server).toBeUndefined();
    expect(await webhooks.takeWebhook("b", released)).toMatchObject({ server: "b", beat: released.beat + 1 });
  });

  test("saveWebhook: a server that knows a later state than that of the database saves nothing", async ({
    webhooks,
  }) => {
    const taken = await webhooks.takeWebhook("a", await webhooks.openWebhook("source"));
    if (taken === undefined) throw new Error("the webhook is not taken");
    expect(await webhooks.saveWebhook("a", { ...taken, beat: taken.beat + 5, position: 9n })).toBeUndefined();
    expect(await webhooks.readWebhook()).toStrictEqual(taken);
  });

  test("countWaiting: entries after the position with one of the actions, and the time of the oldest", async (opened) => {
    const { webhooks, audit } = opened;
    const actions = ["key.banned", "key.created", "key.banned", "data.restored"] as const;
    for (const [i, action] of actions.entries()) await audit.recordAudit(entry(action, AT + i));
    expect(await webhooks.countWaiting(0n, undefined)).toEqual({ count: 4, oldestAt: AT });
    expect(await webhooks.countWaiting(1n, new Set(["key.banned"]))).toEqual({ count: 1, oldestAt: AT + 2 });
    expect(await webhooks.countWaiting(0n, new Set(["key.banned", "data.restored"]))).toMatchObject({
      count: 3,
    });
    expect(await webhooks.countWaiting(4n, undefined)).toEqual({ count: 0 });
  });
}
