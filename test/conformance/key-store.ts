import { expect } from "bun:test";
import type { NewKey } from "../../src/domain/api-keys.ts";
import type { Attribution } from "../../src/domain/audit.ts";
import type { KeyStore } from "../../src/domain/ports/keys.ts";
import { allKeys, BY, hash, storedSecret } from "../key-store-arguments.ts";
import { AT, type TestCase } from "./store-fixture.ts";

const HOUR_MS = 3_600_000;
const free: NewKey = { name: "shop", plan: "free", createdAt: AT };
const OWN_LIMITS = { plan: "enterprise", limits: { perMinute: 7, perDay: 5_000_000 } } as const;
const enterprise: NewKey = { ...free, ...OWN_LIMITS };
const DETAILS = {
  owner: "ann@example.com",
  notes: "Two lines,\nwith 'quotes' and 日本語 🐈",
  labels: ["internal", 'a "b" \\ c', "{}"],
  access: "read",
} as const;
/** What the store adds to a new key that leaves them out. */
const DEFAULTS = { labels: [], access: "write" } as const;

/** What every KeyStore does, on whatever database. */
export function keyStoreConformance(test: TestCase): void {
  test("createKey: returns the given fields and an identifier that starts at 1, and nothing else", async (opened) => {
    const { keys } = opened;
    const given = [free, { ...enterprise, expiresAt: AT + HOUR_MS }, { ...free, ...DETAILS }];
    const expected = given.map((key, i) => ({ id: i + 1, ...DEFAULTS, ...key }));
    for (const [i, key] of given.entries()) {
      expect<unknown>(await keys.createKey(key, storedSecret(i), BY)).toStrictEqual(expected[i]);
      expect<unknown>(await keys.getKey(i + 1)).toStrictEqual(expected[i]);
    }
    expect<unknown>(await allKeys(keys)).toStrictEqual(expected);
    const created = expected.map((key) => ({ key, kind: "key" }));
    expect<unknown>((await keys.changesSince(0)).changed).toStrictEqual(created);
    expect(await keys.getKey(4)).toBeUndefined();
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
    const { keys, audit, another } = opened;
    const { keys: other } = await another();
    const calls = Array.from({ length: 10 }, (_, i) =>
      (i % 2 ? keys : other).createFirstKey(free, storedSecret(i), BY),
    );
    const made = (await Promise.all(calls)).filter((key) => key !== undefined);
    expect(made).toHaveLength(1);
    expect(await keys.createFirstKey(free, storedSecret(99), BY)).toBeUndefined();
    expect(await allKeys(keys)).toStrictEqual(made);
    expect((await audit.listAudit({ limit: 9 })).items).toMatchObject([{ action: "key.created", ...BY }]);
  });

  test("findCredential: each of a hundred concurrent calls finds the key of its hash, or none", async ({
    keys,
  }) => {
    const first = await keys.createKey(free, storedSecret(1), BY);
    const second = await keys.createKey(enterprise, storedSecret(2), BY);
    const hashes = [hash(1), hash(2), hash(3), "", "0", hash(1).slice(1), `${hash(1)}0`];
    const found = await Promise.all(
      Array.from({ length: 100 }, (_, i) => keys.findCredential(hashes[i % 7] ?? "")),
    );
    const expected = [{ key: first }, { key: second }];
    expect(found).toStrictEqual(found.map((_, i) => expected[i % 7]));
  });

  test("addSecret: shortens the overlap of earlier secrets, never extends it, and leaves other keys as they are", async (opened) => {
    const { keys } = opened;
    const key = await keys.createKey(free, storedSecret(1), { ...BY, at: AT });
    const other = await keys.createKey(free, storedSecret(5), { ...BY, at: AT });
    const ends: (number | undefined)[][] = [];
    for (const [n, overlapEndsAt] of [AT + HOUR_MS, AT + 2 * HOUR_MS, AT].entries()) {
      await keys.addSecret(key.id, { ...storedSecret(n + 2), overlapEndsAt }, { ...BY, at: AT + n });
      const found = await Promise.all([1, 2, 3, 4].map(async (i) => keys.findCredential(hash(i))));
      ends.push(found.flatMap((credential) => (credential ? [credential.validUntil] : [])));
    }
    expect(ends).toEqual([
      [AT + HOUR_MS, undefined],
      [AT + HOUR_MS, AT + 2 * HOUR_MS, undefined],
      [AT, AT, AT, undefined],
    ]);
    expect(await keys.findCredential(hash(4))).toStrictEqual({ key });
    expect(await keys.findCredential(hash(5))).toStrictEqual({ key: other });
  });

  test("addSecret: deletes the secrets of the key that were replaced 400 days before, and no other", async (opened) => {
    const { keys } = opened;
    // A database with a clock of its own deletes nothing before its time.
    const day = (n: number) => ({ ...BY, at: AT + (n - 434) * 24 * HOUR_MS });
    for (const n of [1, 2]) await keys.createKey(free, storedSecret(n), day(0));
    await keys.addSecret(2, { ...storedSecret(3), overlapEndsAt: 0 }, day(1));
    const overlaps = { 4: 0, 5: day(31).at, 6: 0, 7: day(440).at };
    const days = { 4: 10, 5: 30, 6: 35, 7: 434 };
    for (const n of [4, 5, 6, 7] as const)
      await keys.addSecret(1, { ...storedSecret(n), overlapEndsAt: overlaps[n] }, day(days[n]));
    const hintsOf = async (id: number) => (await keys.listSecrets([id])).get(id)?.map(({ hint }) => hint);
    // The first was replaced on day 10 and the fourth on day 30, 404 days before; the fifth on day 35, 399 days before.
    expect(await hintsOf(1)).toEqual(["pet_live_7…7", "pet_live_6…6", "pet_live_5…5"]);
    expect(await hintsOf(2)).toEqual(["pet_live_3…3", "pet_live_2…2"]);
    expect(await keys.findCredential(hash(4))).toBeUndefined();
    expect(await keys.findCredential(hash(6))).toBeDefined();
  });

  test("listSecrets: the hint, time and end of each secret, newest first; of one millisecond, those with an end last", async (opened) => {
    const { keys } = opened;
    for (const n of [1, 2]) await keys.createKey(free, storedSecret(n), { ...BY, at: AT });
    await keys.addSecret(1, { ...storedSecret(3), overlapEndsAt: AT + 3 }, { ...BY, at: AT });
    await keys.addSecret(1, { ...storedSecret(4), overlapEndsAt: AT + 4 }, { ...BY, at: AT + 1 });
    const first = [
      { hint: "pet_live_4…4", createdAt: AT + 1 },
      { hint: "pet_live_3…3", createdAt: AT, validUntil: AT + 4 },
      { hint: "pet_live_1…1", createdAt: AT, validUntil: AT + 3 },
    ];
    const second = [{ hint: "pet_live_2…2", createdAt: AT }];
    const listed = await keys.listSecrets([1, 2]);
    expect([listed.size, listed.get(1), listed.get(2)]).toStrictEqual([2, first, second]);
    expect([...(await keys.listSecrets([2, 99]))]).toStrictEqual([[2, second]]);
    expect((await keys.listSecrets([])).size).toBe(0);
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
      { unbannedAt: AT + 1 },
      { plan: "enterprise", limits: { perMinute: 8, perDay: 9 } },
      { limits: { perMinute: 1, perDay: 2 } },
      { revokedAt: AT + 2 },
      {},
    ] as const) {
      const updated = await keys.updateKey(id, change, BY);
      expect<unknown>(updated).toStrictEqual({ ...expected, ...change });
      expect(await keys.getKey(id)).toStrictEqual(updated);
      expected = updated;
    }
    await keys.updateKey(id, { owner: null, notes: null, expiresAt: null, plan: "pro" }, BY);
    const times = { unbannedAt: AT + 1, revokedAt: AT + 2 };
    const key = { id, ...DEFAULTS, ...free, name: "store", plan: "pro", ...times } as const;
    // A key that is revoked is found as well, and has no limits of its own on another plan.
    expect(await keys.findCredential(hash(1))).toStrictEqual({ key });
  });

  test("updateKey: a change that was checked before another one: a revoked key keeps its time, a Free key gets no limits", async (opened) => {
    const { keys, audit } = opened;
    await keys.createKey(free, storedSecret(1), BY);
    const limited = await keys.updateKey(1, { limits: { perMinute: 1, perDay: 2 } }, BY);
    expect(limited.limits).toBeUndefined();
    for (const revokedAt of [AT + 1, AT + 2])
      expect((await keys.updateKey(1, { revokedAt }, BY)).revokedAt).toBe(AT + 1);
    expect((await keys.getKey(1))?.revokedAt).toBe(AT + 1);
    const { items } = await audit.listAudit({ limit: 9 });
    expect(items.map(({ action }) => action)).toEqual(["key.revoked", "key.created"]);
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
    // Changes since a revision that is too high name no key.
    const none = { ...before, changed: [] };
    expect(await keys.changesSince(Number.MAX_SAFE_INTEGER)).toEqual(none);
  });

  test("changesSince: each key that was changed after the revision once, in the order of the changes", async (opened) => {
    const { keys } = opened;
    for (let n = 1; n <= 4; n++) await keys.createKey(free, storedSecret(n), BY);
    const { revision, timeline } = await keys.changesSince(0);
    await keys.updateKey(3, { plan: "pro" }, BY);
    await keys.updateKey(1, { plan: "pro" }, BY);
    await keys.updateKey(3, { plan: "business" }, BY);
    await keys.addSecret(4, { ...storedSecret(5), overlapEndsAt: AT }, BY);
    const { changed, ...rest } = await keys.changesSince(revision);
    const plans = changed.map(({ kind, key }) => `${kind} ${key.id} ${key.plan}`);
    expect(plans).toEqual(["key 1 pro", "key 3 business", "key 4 free"]);
    expect(rest).toEqual({ revision: revision + 4, timeline, hasQuestions: false });
    expect(await keys.changesSince(revision + 4)).toEqual({ ...rest, changed: [] });
  });

  test("changesSince: the keys that were unbanned after the revision, whatever changed since then", async (opened) => {
    const { keys } = opened;
    for (let n = 1; n <= 2; n++) await keys.createKey(free, storedSecret(n), BY);
    const unbannedSince = async (revision: number) =>
      (await keys.changesSince(revision)).changed.flatMap(({ kind, key }) =>
        kind === "unban" ? [[key.id, key.unbannedAt]] : [],
      );
    expect(await unbannedSince(0)).toEqual([]);
    const created = (await keys.changesSince(0)).revision;
    await keys.updateKey(1, { unbannedAt: AT }, BY);
    await keys.updateKey(1, { plan: "pro" }, BY);
    await keys.addSecret(1, { ...storedSecret(3), overlapEndsAt: AT }, BY);
    await keys.updateKey(2, { revokedAt: AT }, BY);
    expect(await unbannedSince(created)).toEqual([[1, AT]]);
    expect(await unbannedSince(created + 1)).toEqual([]);
    await keys.updateKey(1, { unbannedAt: AT }, BY);
    expect(await unbannedSince(created + 1)).toEqual([[1, AT]]);
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
        for (const { key } of changed) seen.set(key.id, key.plan);
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

  test("each change has an audit entry with what has changed, before and after; a change of nothing has none", async (opened) => {
    const { keys, audit } = opened;
    const actor = { kind: "command line", name: "ann" } as const;
    const expiresAt = "2026-11-15T10:30:00.000Z";
    const details = { name: "shop", plan: "free", ...DETAILS, expiresAt, hint: "pet_live_1…1" };
    const { owner, labels } = DETAILS;
    const rolled = (n: number, previousSecretsValidUntil: string) => {
      return ["key.rolled", undefined, { hint: `pet_live_${n}…${n}`, previousSecretsValidUntil }];
    };
    const steps: readonly [change: (by: Attribution) => Promise<unknown>, ...entry: unknown[]][] = [
      [
        (by) => keys.createKey({ ...free, ...DETAILS, expiresAt: AT + HOUR_MS }, storedSecret(1), by),
        ["key.created", undefined, details],
      ],
      [
        (by) => keys.updateKey(1, { ...OWN_LIMITS, owner }, by),
        [
          "key.updated",
          { plan: "free", perMinute: null, perDay: null },
          { plan: "enterprise", perMinute: 7, perDay: 5_000_000 },
        ],
      ],
      [
        (by) => keys.updateKey(1, { owner: null, labels: [], expiresAt: null }, by),
        ["key.updated", { owner, labels, expiresAt }, { owner: null, labels: [], expiresAt: null }],
      ],
      [(by) => keys.updateKey(1, { plan: "enterprise", labels: [], owner: null }, by)],
      [(by) => keys.updateKey(1, { unbannedAt: AT }, by), ["key.unbanned", undefined, undefined]],
      [(by) => keys.updateKey(1, { unbannedAt: AT }, by), ["key.unbanned", undefined, undefined]],
      [
        (by) => keys.addSecret(1, { ...storedSecret(2), overlapEndsAt: AT + HOUR_MS }, by),
        rolled(2, expiresAt),
      ],
      [
        (by) => keys.addSecret(1, { ...storedSecret(3), overlapEndsAt: 0 }, by),
        rolled(3, "2026-11-15T09:30:00.007Z"),
      ],
      [
        (by) => keys.updateKey(1, { revokedAt: by.at }, by),
        ["key.revoked", { revokedAt: null }, { revokedAt: "2026-11-15T09:30:00.008Z" }],
      ],
    ];
    for (const [i, [change]] of steps.entries()) await change({ actor, at: AT + i });
    const { items } = await audit.listAudit({ limit: 100 });
    expect<unknown>(items.map(({ action, before, after }) => [action, before, after]).toReversed()).toEqual(
      steps.flatMap(([, ...entry]) => entry),
    );
    expect(items[0]).toMatchObject({ at: AT + 8, actor, target: { kind: "key", id: 1n } });
  });

  test("announceExpiries: an entry for each key that expires soon, once for each expiry, by one of many processes", async (opened) => {
    const { keys, audit, another } = opened;
    const expiries = [AT - 1, AT + HOUR_MS, AT + 2 * HOUR_MS, AT + 9 * HOUR_MS, AT + HOUR_MS, undefined];
    for (const [i, expiresAt] of expiries.entries())
      await keys.createKey({ ...free, owner: `o${i}`, ...(expiresAt && { expiresAt }) }, storedSecret(i), BY);
    await keys.updateKey(5, { revokedAt: AT }, BY);
    const by = { ...BY, at: AT };
    const until = AT + 2 * HOUR_MS;
    const processes = [keys, (await another()).keys, (await another()).keys];
    await Promise.all(processes.map((each) => each.announceExpiries(until, by)));
    await keys.announceExpiries(until, by);
    const announced = async () =>
      (await audit.listAudit({ action: "key.expires-soon", limit: 9 })).items.map(({ target, after, at }) => [
        Number(target?.id),
        after?.["expiresAt"],
        after?.["owner"],
        at,
      ]);
    const two = [3, new Date(AT + 2 * HOUR_MS).toISOString(), "o2", AT];
    const one = [2, new Date(AT + HOUR_MS).toISOString(), "o1", AT];
    expect((await announced()).toSorted()).toEqual([one, two]);
    // Another expiry is announced again; the same one is not, and a change of a key changes nothing of that.
    await keys.updateKey(2, { expiresAt: AT + HOUR_MS + 1 }, BY);
    await keys.updateKey(3, { owner: "new" }, BY);
    await keys.announceExpiries(until, { ...by, at: AT + 1 });
    expect(await announced()).toHaveLength(3);
    expect((await announced())[0]).toEqual([2, new Date(AT + HOUR_MS + 1).toISOString(), "o1", AT + 1]);
    expect((await keys.changesSince(0)).changed).toHaveLength(6);
  });

  test("announceExpiries: a hundred at a time", async ({ keys, audit }) => {
    for (let i = 0; i < 101; i++) await keys.createKey({ ...free, expiresAt: AT + 1 }, storedSecret(i), BY);
    const announce = () => keys.announceExpiries(AT + 1, { ...BY, at: AT });
    expect([await announce(), await announce()]).toEqual([true, false]);
    const { items } = await audit.listAudit({ action: "key.expires-soon", limit: 200 });
    expect(new Set(items.map(({ target }) => target?.id)).size).toBe(101);
  });
}
