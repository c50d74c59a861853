import { expect } from "bun:test";
import type { NewKey } from "../../src/domain/api-keys.ts";
import type { KeyStore } from "../../src/domain/ports.ts";
import { allKeys, BY, hash, storedSecret } from "../key-store-arguments.ts";
import { AT, type TestCase } from "./store-fixture.ts";

const HOUR_MS = 3_600_000;
const free: NewKey = { name: "shop", plan: "free", createdAt: AT };
const enterprise: NewKey = { ...free, plan: "enterprise", limits: { perMinute: 7, perDay: 5_000_000 } };
/** What the store adds to a new key that leaves them out. */
const DEFAULTS = { labels: [], access: "write" } as const;

/** What every KeyStore does, on whatever database. */
export function keyStoreConformance(test: TestCase): void {
  test("createKey: returns the given fields and an identifier that starts at 1, and nothing else", async (opened) => {
    const { keys } = opened;
    expect(await keys.createKey(free, storedSecret(1), BY)).toStrictEqual({
      id: 1,
      ...DEFAULTS,
      ...free,
    });
    const expiring = { ...enterprise, expiresAt: AT + HOUR_MS };
    expect(await keys.createKey(expiring, storedSecret(2), BY)).toStrictEqual({
      id: 2,
      ...DEFAULTS,
      ...expiring,
    });
    expect(await keys.getKey(1)).toStrictEqual({ id: 1, ...DEFAULTS, ...free });
    expect(await keys.getKey(2)).toStrictEqual({ id: 2, ...DEFAULTS, ...expiring });
    expect(await keys.getKey(3)).toBeUndefined();
  });

  test("createKey: fifty concurrent keys get fifty identifiers, and are listed oldest first", async (opened) => {
    const { keys } = opened;
    const made = await Promise.all(
      Array.from({ length: 50 }, (_, i) => keys.createKey(free, storedSecret(i), BY)),
    );
    const ids = made.map(({ id }) => id).toSorted((a, b) => a - b);
    expect(new Set(ids).size).toBe(50);
    expect((await allKeys(keys)).map(({ id }) => id)).toEqual(ids);
  });

  test("createFirstKey: of concurrent calls in two processes one creates a key, and later calls create none", async (opened) => {
    const { keys, another } = opened;
    const { keys: other } = await another();
    const calls = Array.from({ length: 10 }, (_, i) =>
      (i % 2 ? keys : other).createFirstKey(free, storedSecret(i), BY),
    );
    const made = (await Promise.all(calls)).filter((key) => key !== undefined);
    expect(made).toHaveLength(1);
    expect(await keys.createFirstKey(free, storedSecret(99), BY)).toBeUndefined();
    expect(await allKeys(keys)).toStrictEqual(made);
  });

  test("findCredential: finds a key by the hash of its secret only", async ({ keys }) => {
    const key = await keys.createKey(free, storedSecret(1), BY);
    expect(await keys.findCredential(hash(1))).toStrictEqual({ key });
    for (const other of [hash(2), "", "0", hash(1).slice(1), `${hash(1)}0`]) {
      expect(await keys.findCredential(other)).toBeUndefined();
    }
  });

  test("findCredential: each of a hundred concurrent calls finds its own key, or none", async ({ keys }) => {
    const made = [
      await keys.createKey(free, storedSecret(0), BY),
      await keys.createKey(enterprise, storedSecret(1), BY),
    ];
    const found = await Promise.all(Array.from({ length: 100 }, (_, i) => keys.findCredential(hash(i % 3))));
    found.forEach((credential, i) => expect(credential?.key).toEqual(made[i % 3]));
  });

  test("addSecret: both secrets find the key, the earlier one has an end, and other keys stay as they are", async (opened) => {
    const { keys } = opened;
    const key = await keys.createKey(free, storedSecret(1), BY);
    const other = await keys.createKey(free, storedSecret(3), BY);
    await keys.addSecret(key.id, { ...storedSecret(2), overlapEndsAt: AT + HOUR_MS }, BY);
    expect(await keys.findCredential(hash(1))).toStrictEqual({ key, validUntil: AT + HOUR_MS });
    expect(await keys.findCredential(hash(2))).toStrictEqual({ key });
    expect(await keys.findCredential(hash(3))).toStrictEqual({ key: other });
  });

  test("addSecret: shortens the overlap of earlier secrets, and never extends it", async ({ keys }) => {
    const { id } = await keys.createKey(free, storedSecret(1), BY);
    await keys.addSecret(id, { ...storedSecret(2), overlapEndsAt: AT + HOUR_MS }, BY);
    await keys.addSecret(id, { ...storedSecret(3), overlapEndsAt: AT + 2 * HOUR_MS }, BY);
    expect((await keys.findCredential(hash(1)))?.validUntil).toBe(AT + HOUR_MS);
    expect((await keys.findCredential(hash(2)))?.validUntil).toBe(AT + 2 * HOUR_MS);
    await keys.addSecret(id, { ...storedSecret(4), overlapEndsAt: AT }, BY);
    expect((await keys.findCredential(hash(1)))?.validUntil).toBe(AT);
    expect((await keys.findCredential(hash(3)))?.validUntil).toBe(AT);
    expect((await keys.findCredential(hash(4)))?.validUntil).toBeUndefined();
  });

  test("updateKey: changes the given fields only; a plan other than Enterprise removes the key's own limits", async (opened) => {
    const { keys } = opened;
    const { id } = await keys.createKey({ ...enterprise, expiresAt: 1 }, storedSecret(1), BY);
    await keys.updateKey(id, { unbannedAt: AT + 1 }, BY);
    await keys.updateKey(id, { limits: { perMinute: 8, perDay: 9 } }, BY);
    await keys.updateKey(id, { revokedAt: AT + 2 }, BY);
    await keys.updateKey(id, {}, BY);
    const { limits: _, ...withoutLimits } = enterprise;
    const times = { expiresAt: 1, unbannedAt: AT + 1, revokedAt: AT + 2 };
    const expected = { id, ...DEFAULTS, ...withoutLimits, ...times };
    expect(await keys.getKey(id)).toStrictEqual({ ...expected, limits: { perMinute: 8, perDay: 9 } });
    await keys.updateKey(id, { plan: "pro" }, BY);
    // A key that is revoked and has expired is found as well.
    expect((await keys.findCredential(hash(1)))?.key).toStrictEqual({ ...expected, plan: "pro" });
    await keys.updateKey(id, { plan: "enterprise", limits: { perMinute: 1, perDay: 2 } }, BY);
    expect((await keys.getKey(id))?.limits).toEqual({ perMinute: 1, perDay: 2 });
  });

  test("a change that fails changes nothing: neither keys, nor secrets, nor the revision, nor the audit trail", async (opened) => {
    const { keys, audit } = opened;
    const key = await keys.createKey(free, storedSecret(1), BY);
    const before = await keys.changesSince(0);
    await expect(keys.createKey(free, storedSecret(1), BY)).rejects.toThrow();
    const secret = (n: number) => ({ ...storedSecret(n), overlapEndsAt: AT });
    await expect(keys.addSecret(key.id, secret(1), BY)).rejects.toThrow();
    await expect(keys.updateKey(99, { plan: "pro" }, BY)).rejects.toThrow();
    await expect(keys.addSecret(99, secret(2), BY)).rejects.toThrow();
    expect(await allKeys(keys)).toEqual([key]);
    expect(await keys.findCredential(hash(1))).toStrictEqual({ key });
    expect(await keys.findCredential(hash(2))).toBeUndefined();
    expect(await keys.changesSince(0)).toEqual(before);
    expect((await audit.listAudit({ limit: 9 })).items).toHaveLength(1);
    // As a revision that is too high does.
    const { revision } = before;
    const none = { revision, changed: [], unbanned: [] };
    expect(await keys.changesSince(Number.MAX_SAFE_INTEGER)).toEqual(none);
  });

  test("changesSince: every kind of change increments the revision and returns the current key", async (opened) => {
    const { keys } = opened;
    let { revision } = await keys.changesSince(0);
    const next = async () => {
      const since = revision;
      const changes = await keys.changesSince(since);
      revision = changes.revision;
      expect(revision).toBeGreaterThan(since);
      return changes.changed;
    };
    const { id } = await keys.createKey(free, storedSecret(1), BY);
    expect(await next()).toStrictEqual([{ id, ...DEFAULTS, ...free }]);
    await keys.updateKey(id, { plan: "pro" }, BY);
    expect(await next()).toStrictEqual([{ id, ...DEFAULTS, ...free, plan: "pro" }]);
    await keys.addSecret(id, { ...storedSecret(2), overlapEndsAt: AT }, BY);
    expect(await next()).toStrictEqual([{ id, ...DEFAULTS, ...free, plan: "pro" }]);
    expect(await keys.changesSince(revision)).toEqual({ revision, changed: [], unbanned: [] });
  });

  test("changesSince: returns each key that changed after the revision once, in the order of the changes", async (opened) => {
    const { keys } = opened;
    const ids: number[] = [];
    for (let n = 0; n < 4; n++) ids.push((await keys.createKey(free, storedSecret(n), BY)).id);
    const [first = 0, second = 0, third = 0] = ids;
    const { revision } = await keys.changesSince(0);
    await keys.updateKey(third, { plan: "pro" }, BY);
    await keys.updateKey(first, { plan: "pro" }, BY);
    await keys.updateKey(third, { plan: "business" }, BY);
    const { changed } = await keys.changesSince(revision);
    expect(changed.map(({ id, plan }) => [id, plan])).toEqual([
      [first, "pro"],
      [third, "business"],
    ]);
    expect(changed.map(({ id }) => id)).not.toContain(second);
  });

  test("changesSince: returns the keys that were unbanned after the revision, whatever changed since then", async (opened) => {
    const { keys } = opened;
    const { id } = await keys.createKey(free, storedSecret(1), BY);
    const other = await keys.createKey(free, storedSecret(2), BY);
    const unbannedSince = async (revision: number) =>
      (await keys.changesSince(revision)).unbanned.map((key) => [key.id, key.unbannedAt]);
    const created = (await keys.changesSince(0)).revision;
    expect(await unbannedSince(0)).toEqual([]);

    await keys.updateKey(id, { unbannedAt: AT }, BY);
    const unbanned = (await keys.changesSince(0)).revision;
    await keys.updateKey(id, { plan: "pro" }, BY);
    await keys.addSecret(id, { ...storedSecret(3), overlapEndsAt: AT }, BY);
    await keys.updateKey(other.id, { revokedAt: AT }, BY);
    expect(await unbannedSince(created)).toEqual([[id, AT]]);
    expect(await unbannedSince(unbanned)).toEqual([]);

    await keys.updateKey(id, { unbannedAt: AT }, BY);
    expect(await unbannedSince(unbanned)).toEqual([[id, AT]]);
  });

  test("changesSince: a reader in a third process misses no change of two concurrent writers", async (opened) => {
    const { keys, another } = opened;
    const { keys: other } = await another();
    const { keys: reader } = await another();
    const seen = new Map<number, string>();
    let since = 0;
    let polling = Promise.resolve();
    // One poll at a time, as servers do: the results of two concurrent polls can arrive in any order.
    const poll = () =>
      (polling = polling.then(async () => {
        const { revision, changed } = await reader.changesSince(since);
        expect(revision).toBeGreaterThanOrEqual(since);
        since = revision;
        for (const key of changed) seen.set(key.id, key.plan);
      }));
    const write = async (keyStore: KeyStore, base: number) => {
      for (let n = base; n < base + 20; n++) {
        const { id } = await keyStore.createKey(free, storedSecret(n), BY);
        await poll();
        await keyStore.updateKey(id, { plan: n % 2 === 0 ? "pro" : "business" }, BY);
        await poll();
      }
    };
    await Promise.all([write(keys, 100), write(other, 200)]);
    await poll();
    const actual = (await allKeys(keys)).map(({ id, plan }): [number, string] => [id, plan]);
    expect(actual).toHaveLength(40);
    expect([...seen].toSorted(([a], [b]) => a - b)).toEqual(actual);
  });
}
