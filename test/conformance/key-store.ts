import { describe, expect, test } from "bun:test";
import type { NewKey } from "../../src/domain/api-keys.ts";
import type { KeyStore } from "../../src/domain/ports.ts";

/** A key store on a place of its own that holds nothing yet. */
export interface OpenedKeyStore {
  readonly keys: KeyStore;
  /** Another on the same data while the first stays open, as another process has it. */
  another(): Promise<KeyStore>;
  /** Closes all of them, and removes the data. */
  close(): Promise<void>;
}

const AT = Date.UTC(2026, 10, 15, 9, 30);
const HOUR_MS = 3_600_000;
const free: NewKey = { name: "shop", plan: "free", createdAt: AT };
const enterprise: NewKey = { ...free, plan: "enterprise", limits: { perMinute: 7, perDay: 5_000_000 } };
/** Stands for the SHA-256 of a secret. */
const hash = (n: number) => n.toString(16).padStart(64, "0");

/** What any KeyStore must do. */
export function keyStoreConformance(name: string, open: () => Promise<OpenedKeyStore>): void {
  const withKeys = (work: (keys: KeyStore, opened: OpenedKeyStore) => Promise<void>) => async () => {
    const opened = await open();
    try {
      await work(opened.keys, opened);
    } finally {
      await opened.close();
    }
  };

  describe(`${name} as a KeyStore`, () => {
    test(
      "createKey: the key as it was given, with an identifier from 1 on, and nothing that was not given",
      withKeys(async (keys) => {
        expect(await keys.createKey(free, hash(1))).toStrictEqual({ id: 1, ...free });
        const expiring = { ...enterprise, expiresAt: AT + HOUR_MS };
        expect(await keys.createKey(expiring, hash(2))).toStrictEqual({ id: 2, ...expiring });
        expect(await keys.getKey(1)).toStrictEqual({ id: 1, ...free });
        expect(await keys.getKey(2)).toStrictEqual({ id: 2, ...expiring });
        expect(await keys.getKey(3)).toBeUndefined();
      }),
    );

    test(
      "createKey: fifty at once get fifty identifiers, and are listed oldest first",
      withKeys(async (keys) => {
        const made = await Promise.all(Array.from({ length: 50 }, (_, i) => keys.createKey(free, hash(i))));
        const ids = made.map(({ id }) => id).toSorted((a, b) => a - b);
        expect(new Set(ids).size).toBe(50);
        expect((await keys.listKeys()).map(({ id }) => id)).toEqual(ids);
      }),
    );

    test(
      "createFirstKey: of many at once and elsewhere one makes it, and later ones make none",
      withKeys(async (keys, { another }) => {
        const elsewhere = await another();
        const tries = Array.from({ length: 10 }, (_, i) =>
          (i % 2 ? keys : elsewhere).createFirstKey(free, hash(i)),
        );
        const made = (await Promise.all(tries)).filter((key) => key !== undefined);
        expect(made).toHaveLength(1);
        expect(await keys.createFirstKey(free, hash(99))).toBeUndefined();
        expect(await keys.listKeys()).toStrictEqual(made);
      }),
    );

    test(
      "createKey: a secret that another key has is refused, and no key is made",
      withKeys(async (keys) => {
        await keys.createKey(free, hash(1));
        const { revision } = await keys.changesSince(0);
        await expect(keys.createKey(free, hash(1))).rejects.toThrow();
        expect(await keys.listKeys()).toHaveLength(1);
        expect((await keys.changesSince(0)).revision).toBe(revision);
      }),
    );

    test(
      "findCredential: by the hash of a secret and nothing else",
      withKeys(async (keys) => {
        const key = await keys.createKey(free, hash(1));
        expect(await keys.findCredential(hash(1))).toStrictEqual({ key });
        for (const other of [hash(2), "", "0", hash(1).slice(1), `${hash(1)}0`]) {
          expect(await keys.findCredential(other)).toBeUndefined();
        }
      }),
    );

    test(
      "findCredential: a key that is revoked or expired is found, for the principal to judge",
      withKeys(async (keys) => {
        const { id } = await keys.createKey({ ...free, expiresAt: 1 }, hash(1));
        await keys.updateKey(id, { revokedAt: AT });
        expect((await keys.findCredential(hash(1)))?.key).toMatchObject({ id, expiresAt: 1, revokedAt: AT });
      }),
    );

    test(
      "addSecret: both secrets open the key, and the older one says until when",
      withKeys(async (keys) => {
        const key = await keys.createKey(free, hash(1));
        await keys.addSecret(key.id, hash(2), AT + HOUR_MS);
        expect(await keys.findCredential(hash(1))).toStrictEqual({ key, validUntil: AT + HOUR_MS });
        expect(await keys.findCredential(hash(2))).toStrictEqual({ key });
      }),
    );

    test(
      "addSecret: an overlap that already has an end is never made longer, and may be made shorter",
      withKeys(async (keys) => {
        const { id } = await keys.createKey(free, hash(1));
        await keys.addSecret(id, hash(2), AT + HOUR_MS);
        await keys.addSecret(id, hash(3), AT + 2 * HOUR_MS);
        expect((await keys.findCredential(hash(1)))?.validUntil).toBe(AT + HOUR_MS);
        expect((await keys.findCredential(hash(2)))?.validUntil).toBe(AT + 2 * HOUR_MS);
        await keys.addSecret(id, hash(4), AT);
        expect((await keys.findCredential(hash(1)))?.validUntil).toBe(AT);
        expect((await keys.findCredential(hash(3)))?.validUntil).toBe(AT);
        expect((await keys.findCredential(hash(4)))?.validUntil).toBeUndefined();
      }),
    );

    test(
      "addSecret: the secrets of other keys are left alone",
      withKeys(async (keys) => {
        const { id } = await keys.createKey(free, hash(1));
        const other = await keys.createKey(free, hash(2));
        await keys.addSecret(id, hash(3), AT);
        expect(await keys.findCredential(hash(2))).toStrictEqual({ key: other });
      }),
    );

    test(
      "addSecret: a secret that is taken changes nothing",
      withKeys(async (keys) => {
        const { id } = await keys.createKey(free, hash(1));
        await expect(keys.addSecret(id, hash(1), AT)).rejects.toThrow();
        expect((await keys.findCredential(hash(1)))?.validUntil).toBeUndefined();
      }),
    );

    test(
      "updateKey: changes what is given and leaves the rest",
      withKeys(async (keys) => {
        const { id } = await keys.createKey(enterprise, hash(1));
        await keys.updateKey(id, { unbannedAt: AT + 1 });
        await keys.updateKey(id, { limits: { perMinute: 8, perDay: 9 } });
        await keys.updateKey(id, { revokedAt: AT + 2 });
        await keys.updateKey(id, {});
        expect(await keys.getKey(id)).toStrictEqual({
          id,
          ...enterprise,
          limits: { perMinute: 8, perDay: 9 },
          unbannedAt: AT + 1,
          revokedAt: AT + 2,
        });
      }),
    );

    test(
      "updateKey: own limits come with Enterprise and go with it",
      withKeys(async (keys) => {
        const { id } = await keys.createKey(free, hash(1));
        await keys.updateKey(id, { plan: "enterprise", limits: { perMinute: 1, perDay: 2 } });
        expect(await keys.getKey(id)).toStrictEqual({
          id,
          ...free,
          plan: "enterprise",
          limits: { perMinute: 1, perDay: 2 },
        });
        await keys.updateKey(id, { plan: "pro" });
        expect(await keys.getKey(id)).toStrictEqual({ id, ...free, plan: "pro" });
      }),
    );

    test(
      "a change of a key that does not exist fails, and counts as no change",
      withKeys(async (keys) => {
        await expect(keys.updateKey(99, { plan: "pro" })).rejects.toThrow();
        await expect(keys.addSecret(99, hash(1), AT)).rejects.toThrow();
        expect(await keys.findCredential(hash(1))).toBeUndefined();
        expect((await keys.changesSince(0)).changed).toEqual([]);
      }),
    );

    test(
      "changesSince: every kind of change moves the revision on and shows the key as it is now",
      withKeys(async (keys) => {
        let { revision } = await keys.changesSince(0);
        const next = async () => {
          const since = revision;
          const changes = await keys.changesSince(since);
          revision = changes.revision;
          expect(revision).toBeGreaterThan(since);
          return changes.changed;
        };
        const { id } = await keys.createKey(free, hash(1));
        expect(await next()).toStrictEqual([{ id, ...free }]);
        await keys.updateKey(id, { plan: "pro" });
        expect(await next()).toStrictEqual([{ id, ...free, plan: "pro" }]);
        await keys.addSecret(id, hash(2), AT);
        expect(await next()).toStrictEqual([{ id, ...free, plan: "pro" }]);
        expect(await keys.changesSince(revision)).toEqual({ revision, changed: [] });
      }),
    );

    test(
      "changesSince: only what changed after the revision, once each, in the order of the changes",
      withKeys(async (keys) => {
        const ids: number[] = [];
        for (let n = 0; n < 4; n++) ids.push((await keys.createKey(free, hash(n))).id);
        const [first = 0, second = 0, third = 0] = ids;
        const { revision } = await keys.changesSince(0);
        await keys.updateKey(third, { plan: "pro" });
        await keys.updateKey(first, { plan: "pro" });
        await keys.updateKey(third, { plan: "business" });
        const { changed } = await keys.changesSince(revision);
        expect(changed.map(({ id, plan }) => [id, plan])).toEqual([
          [first, "pro"],
          [third, "business"],
        ]);
        expect(changed.map(({ id }) => id)).not.toContain(second);
      }),
    );

    test(
      "changesSince: a revision from the future gives the present one, without changes",
      withKeys(async (keys) => {
        await keys.createKey(free, hash(1));
        const { revision } = await keys.changesSince(0);
        expect(await keys.changesSince(Number.MAX_SAFE_INTEGER)).toEqual({ revision, changed: [] });
      }),
    );

    test(
      "changesSince: a follower elsewhere misses none of the changes of two that make them at once",
      withKeys(async (keys, { another }) => {
        const other = await another();
        const follower = await another();
        const seen = new Map<number, string>();
        let since = 0;
        let following = Promise.resolve();
        // One look at a time, as a follower does it: answers to two at once may come in any order.
        const follow = () =>
          (following = following.then(async () => {
            const { revision, changed } = await follower.changesSince(since);
            expect(revision).toBeGreaterThanOrEqual(since);
            since = revision;
            for (const key of changed) seen.set(key.id, key.plan);
          }));
        const work = async (on: KeyStore, base: number) => {
          for (let n = base; n < base + 20; n++) {
            const { id } = await on.createKey(free, hash(n));
            await follow();
            await on.updateKey(id, { plan: n % 2 === 0 ? "pro" : "business" });
            await follow();
          }
        };
        await Promise.all([work(keys, 100), work(other, 200)]);
        await follow();
        const actual = (await keys.listKeys()).map(({ id, plan }): [number, string] => [id, plan]);
        expect(actual).toHaveLength(40);
        expect([...seen].toSorted(([a], [b]) => a - b)).toEqual(actual);
      }),
    );
  });
}
