import { expect } from "bun:test";
import type { NewKey } from "../../src/domain/api-keys.ts";
import type { AuditStore } from "../../src/domain/ports.ts";
import { allKeys, BY, storedSecret } from "../key-store-arguments.ts";
import { AT, type TestCase } from "./store-fixture.ts";

const HOUR_MS = 3_600_000;
const free: NewKey = { name: "shop", plan: "free", createdAt: AT };
const DETAILS = {
  owner: "ann@example.com",
  notes: "Two lines,\nwith 'quotes' and 日本語 🐈",
  labels: ["internal", 'a "b" \\ c', "{}"],
  access: "read",
} as const;
const ann = { kind: "command line", name: "ann" } as const;

/** What operators write about keys, the secrets of keys, and the audit entries of their changes. */
export function keyDetailsConformance(test: TestCase): void {
  test("createKey: owner, notes, labels and access are returned as given", async ({ keys }) => {
    const key = await keys.createKey({ ...free, ...DETAILS }, storedSecret(1), BY);
    expect(key).toStrictEqual({ id: 1, ...free, ...DETAILS });
    expect(await keys.getKey(1)).toStrictEqual(key);
    expect(await allKeys(keys)).toStrictEqual([key]);
    expect((await keys.findCredential(storedSecret(1).hash))?.key).toStrictEqual(key);
    expect((await keys.changesSince(0)).changed).toStrictEqual([key]);
  });

  test("updateKey: changes each field alone, and null removes owner, notes and expiry", async ({ keys }) => {
    const { id } = await keys.createKey({ ...free, ...DETAILS, expiresAt: AT + 1 }, storedSecret(1), BY);
    let expected = await keys.getKey(id);
    for (const change of [
      { name: "store" },
      { owner: "bob" },
      { notes: "none" },
      { labels: [] },
      { access: "write" },
      { expiresAt: AT + HOUR_MS },
    ] as const) {
      const updated = await keys.updateKey(id, change, BY);
      expect<unknown>(updated).toStrictEqual({ ...expected, ...change });
      expect(await keys.getKey(id)).toStrictEqual(updated);
      expected = updated;
    }
    await keys.updateKey(id, { owner: null, notes: null, expiresAt: null }, BY);
    expect(await keys.getKey(id)).toStrictEqual({
      id,
      ...free,
      name: "store",
      labels: [],
      access: "write",
    });
  });

  test("listSecrets: the hint, time and end of each secret, newest first", async ({ keys }) => {
    await keys.createKey(free, storedSecret(1), { ...BY, at: AT });
    await keys.createKey(free, storedSecret(2), { ...BY, at: AT });
    const overlapEndsAt = AT + HOUR_MS;
    await keys.addSecret(1, { ...storedSecret(3), overlapEndsAt }, { ...BY, at: AT + 1 });
    const first = [
      { hint: "pet_live_3…3", createdAt: AT + 1 },
      { hint: "pet_live_1…1", createdAt: AT, validUntil: overlapEndsAt },
    ];
    const second = [{ hint: "pet_live_2…2", createdAt: AT }];
    const sorted = [...(await keys.listSecrets([1, 2]))].toSorted(([a], [b]) => a - b);
    expect(sorted).toStrictEqual([
      [1, first],
      [2, second],
    ]);
    expect([...(await keys.listSecrets([2, 99]))]).toStrictEqual([[2, second]]);
    expect((await keys.listSecrets([])).size).toBe(0);
    expect((await keys.listSecrets([1, 2])).size).toBe(2);
  });

  test("listSecrets: of two secrets of the same millisecond, the one without an end comes first", async (opened) => {
    const { keys } = opened;
    await keys.createKey(free, storedSecret(1), { ...BY, at: AT });
    for (const n of [2, 3]) {
      await keys.addSecret(1, { ...storedSecret(n), overlapEndsAt: AT + n }, { ...BY, at: AT });
    }
    const hints = (await keys.listSecrets([1])).get(1)?.map(({ hint }) => hint);
    expect(hints).toEqual(["pet_live_3…3", "pet_live_2…2", "pet_live_1…1"]);
  });

  const target = { kind: "key", id: 1n } as const;
  const entriesOf = async ({ audit }: { audit: AuditStore }) => (await audit.listAudit({ limit: 100 })).items;

  test("audit entry of createKey: the fields that were given, and the hint of the secret", async (stores) => {
    const key = { ...free, ...DETAILS, expiresAt: AT + HOUR_MS };
    await stores.keys.createKey(key, storedSecret(1), { actor: ann, at: AT });
    expect(await entriesOf(stores)).toStrictEqual([
      {
        id: 1n,
        at: AT,
        actor: ann,
        action: "key.created",
        target,
        after: {
          name: "shop",
          plan: "free",
          ...DETAILS,
          expiresAt: "2026-11-15T10:30:00.000Z",
          hint: "pet_live_1…1",
        },
      },
    ]);
  });

  test("audit entry of createFirstKey: one, for the key that was created", async (stores) => {
    await stores.keys.createFirstKey(free, storedSecret(1), { actor: { kind: "server" }, at: AT });
    await stores.keys.createFirstKey(free, storedSecret(2), { actor: { kind: "server" }, at: AT });
    expect(await entriesOf(stores)).toMatchObject([{ action: "key.created", actor: { kind: "server" } }]);
  });

  test("audit entries of updateKey: each changed field before and after, and no entry if nothing changes", async (stores) => {
    const { keys } = stores;
    await keys.createKey({ ...free, owner: "bob" }, storedSecret(1), { actor: ann, at: AT });
    const by = { actor: ann, at: AT + 1 };
    await keys.updateKey(1, { plan: "enterprise", limits: { perMinute: 1, perDay: 2 }, owner: "bob" }, by);
    await keys.updateKey(1, { owner: null, labels: ["x"], expiresAt: AT + HOUR_MS }, by);
    await keys.updateKey(1, { plan: "pro" }, by);
    await keys.updateKey(1, { plan: "pro", labels: ["x"], notes: null }, by);
    await keys.updateKey(1, {}, by);
    const [toPro, cleared, toEnterprise, ...others] = await entriesOf(stores);
    expect(toEnterprise).toStrictEqual({
      id: 2n,
      at: AT + 1,
      actor: ann,
      action: "key.updated",
      target,
      before: { plan: "free", perMinute: null, perDay: null },
      after: { plan: "enterprise", perMinute: 1, perDay: 2 },
    });
    expect(cleared).toMatchObject({
      before: { owner: "bob", labels: [], expiresAt: null },
      after: { owner: null, labels: ["x"], expiresAt: "2026-11-15T10:30:00.000Z" },
    });
    expect(toPro).toMatchObject({
      before: { plan: "enterprise", perMinute: 1, perDay: 2 },
      after: { plan: "pro", perMinute: null, perDay: null },
    });
    expect(others).toHaveLength(1);
  });

  test("audit entries of revocation, unban and roll: actions of their own", async (stores) => {
    const { keys } = stores;
    await keys.createKey(free, storedSecret(1), { actor: ann, at: AT });
    await keys.updateKey(1, { unbannedAt: AT + 1 }, { actor: ann, at: AT + 1 });
    await keys.updateKey(1, { unbannedAt: AT + 1 }, { actor: ann, at: AT + 2 });
    const secret = { ...storedSecret(2), overlapEndsAt: AT + HOUR_MS };
    await keys.addSecret(1, secret, { actor: ann, at: AT + 3 });
    await keys.addSecret(1, { ...storedSecret(3), overlapEndsAt: 0 }, { actor: ann, at: AT + 4 });
    await keys.updateKey(1, { revokedAt: AT + 5 }, { actor: ann, at: AT + 5 });
    expect(
      (await entriesOf(stores)).map(({ at, action, before, after }) => [at - AT, action, before, after]),
    ).toEqual([
      [5, "key.revoked", { revokedAt: null }, { revokedAt: "2026-11-15T09:30:00.005Z" }],
      [
        4,
        "key.rolled",
        undefined,
        { hint: "pet_live_3…3", previousSecretsValidUntil: "2026-11-15T09:30:00.004Z" },
      ],
      [
        3,
        "key.rolled",
        undefined,
        { hint: "pet_live_2…2", previousSecretsValidUntil: "2026-11-15T10:30:00.000Z" },
      ],
      [2, "key.unbanned", undefined, undefined],
      [1, "key.unbanned", undefined, undefined],
      [0, "key.created", undefined, { name: "shop", plan: "free", access: "write", hint: "pet_live_1…1" }],
    ]);
  });

  test("a change that was checked before another one: a revoked key keeps its time, a Free key gets no limits", async (stores) => {
    const { keys } = stores;
    await keys.createKey(free, storedSecret(1), BY);
    const limited = await keys.updateKey(1, { limits: { perMinute: 1, perDay: 2 } }, BY);
    expect(limited.limits).toBeUndefined();
    await keys.updateKey(1, { revokedAt: AT + 1 }, BY);
    const again = await keys.updateKey(1, { revokedAt: AT + 2 }, BY);
    expect(again.revokedAt).toBe(AT + 1);
    expect((await keys.getKey(1))?.revokedAt).toBe(AT + 1);
    expect((await entriesOf(stores)).map(({ action }) => action)).toEqual(["key.revoked", "key.created"]);
  });
}
