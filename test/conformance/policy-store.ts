import { expect } from "bun:test";
import { DEFAULT_POLICY } from "../../src/domain/policy.ts";
import { storedSecret } from "../key-store-arguments.ts";
import type { TestCase } from "./store-fixture.ts";

const BY = { actor: { kind: "admin API", operator: "ann" }, at: 5 } as const;

export function policyStoreConformance(test: TestCase): void {
  test("there are the defaults at first; a change is stored with its audit entries, for every process", async (opened) => {
    const { policies, keys, audit, another } = opened;
    expect(await policies.readPolicy()).toEqual(DEFAULT_POLICY);
    const { revision } = await keys.changesSince(0);
    const { plans, ban } = DEFAULT_POLICY;
    const first = { plans: { ...plans, free: { perMinute: 61, perDay: 1_000 } }, ban };
    expect(await policies.updatePolicy({ plans: { free: { perMinute: 61 } } }, BY)).toEqual(first);
    expect(await (await another()).policies.readPolicy()).toEqual(first);
    // Servers see it by the revision of the keys.
    expect(await keys.changesSince(revision)).toMatchObject({ revision: revision + 1, changed: [] });

    const anonymous = { perMinute: 5, perDay: 50 };
    const change = { plans: { free: { perDay: 2 }, anonymous }, ban: { graceMs: 0, lengthMs: 9_000_000 } };
    expect(await policies.updatePolicy(change, BY)).toEqual({
      plans: { ...plans, free: { perMinute: 61, perDay: 2 }, anonymous },
      ban: { ...ban, graceMs: 0, lengthMs: 9_000_000, maxLengthMs: 9_000_000 },
    });
    const { items } = await audit.listAudit({ limit: 9 });
    expect(items.toReversed()).toMatchObject([
      { ...BY, action: "plan.updated", before: { perMinute: 60 }, after: { plan: "free", perMinute: 61 } },
      { action: "plan.updated", before: { perDay: 1_000 }, after: { plan: "free", perDay: 2 } },
      {
        action: "plan.updated",
        before: { perMinute: 300, perDay: 10_000 },
        after: { plan: "anonymous", ...anonymous },
      },
      {
        action: "ban-rules.updated",
        before: { graceMs: 1_000, lengthMs: 300_000, maxLengthMs: 2_400_000 },
        after: { graceMs: 0, lengthMs: 9_000_000, maxLengthMs: 9_000_000 },
      },
    ]);
  });

  test("what changes nothing writes nothing", async (opened) => {
    const { policies, keys, audit } = opened;
    const revisionOf = async () => (await keys.changesSince(0)).revision;
    const before = await revisionOf();
    expect(await policies.updatePolicy({}, BY)).toEqual(DEFAULT_POLICY);
    await policies.updatePolicy({ plans: { pro: { perMinute: 300 } }, ban: { strikes: 10 } }, BY);
    expect(await revisionOf()).toBe(before);
    expect((await audit.listAudit({ limit: 9 })).items).toEqual([]);
  });

  test("of processes that change it at the same time each changes its own values, and none is recorded twice", async (opened) => {
    const { policies, audit, another } = opened;
    const stores = [policies, (await another()).policies, (await another()).policies];
    const same = { plans: { business: { perDay: 7 } } };
    await Promise.all([
      ...stores.map((store) => store.updatePolicy(same, BY)),
      ...stores.map((store, n) => store.updatePolicy({ ban: { strikes: 20 + n } }, BY)),
    ]);
    const policy = await policies.readPolicy();
    expect(policy.plans.business).toEqual({ perMinute: 1_000, perDay: 7 });
    expect(policy.ban.strikes).toBeOneOf([20, 21, 22]);
    const { items } = await audit.listAudit({ action: "plan.updated", limit: 9 });
    expect(items.length).toBe(1);
  });

  test("counts the keys of each plan that are not revoked", async ({ policies, keys }) => {
    const create = (n: number, plan: "free" | "pro") =>
      keys.createKey({ name: `${n}`, plan, createdAt: 0 }, storedSecret(n), BY);
    const { id } = await create(1, "free");
    await create(2, "free");
    await create(3, "pro");
    await keys.updateKey(id, { revokedAt: 1 }, BY);
    expect(await policies.countKeys()).toEqual({ free: 1, pro: 1, business: 0, enterprise: 0 });
  });
}
