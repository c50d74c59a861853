import { expect } from "bun:test";
import { KEY_STATES, type NewKey, keyState } from "../../src/domain/api-keys.ts";
import type { KeyFilter, KeyListQuery } from "../../src/domain/key-lists.ts";
import type { Stores } from "../../src/domain/ports/stores.ts";
import type { KeyStore } from "../../src/domain/ports/keys.ts";
import { BY, hash } from "../key-store-arguments.ts";
import { AT, DAY_MS, type TestCase } from "./store-fixture.ts";

const NOW = AT + DAY_MS;
const COUNTS = { limited: 0, banned: 0, errors: 0, byOperation: [] };

/** 1 Mobile, 2 tablet, 3 Österreich, 4 100%, 5 gone, 6 old, 7 off. The last use of key 1 was a deprecated one. */
const KEYS: readonly Partial<NewKey>[] = [
  { name: "Mobile App", owner: "Ann@example.com", labels: ["internal", "EU"], plan: "pro", access: "read" },
  { name: "tablet", labels: ['a "b" \\ c', "x,y"], plan: "business" },
  { name: "Österreich", owner: "Émile", labels: ["Größe"] },
  { name: "100%_sure [x] *", createdAt: NOW },
  { name: "gone", expiresAt: NOW + 8 },
  { name: "old", expiresAt: NOW },
  { name: "off", disabledAt: AT, expiresAt: NOW + 8 },
];
const HINTS = ["pet_live_aB3d…x9Kq", "pet_live_Zz_9…x9KQ"];

async function fill({ keys, usageHistory }: Stores): Promise<void> {
  for (const [i, key] of KEYS.entries()) {
    const hint = HINTS[i] ?? `pet_live_000${i}…111${i}`;
    await keys.createKey({ name: "", plan: "free", createdAt: AT, ...key }, { hash: hash(i), hint }, BY);
  }
  await keys.updateKey(5, { revokedAt: AT }, BY);
  const byOperation = [{ operation: "getPet", admitted: 1, errors: 0 }] as const;
  const used = [
    { ...COUNTS, keyId: 1, admitted: 3, lastUsedAt: NOW - 5, byOperation },
    { ...COUNTS, keyId: 2, admitted: 1, limited: 8, lastUsedAt: NOW - 9 },
    { ...COUNTS, keyId: 3, admitted: 4, lastUsedAt: NOW - 7 },
  ];
  const hour = NOW - (NOW % 3_600_000);
  await usageHistory.addUsage({ writer: "w", sequence: 1, hour, keys: used });
  const earlier = [{ ...COUNTS, keyId: 4, admitted: 99, lastUsedAt: NOW - 2 * DAY_MS }];
  await usageHistory.addUsage({ writer: "w", sequence: 2, hour: hour - 2 * DAY_MS, keys: earlier });
}

const ALL = [1, 2, 3, 4, 6, 7, 5];
const FILTERS: readonly [filter: KeyFilter, ids: readonly number[]][] = [
  [{}, ALL],
  [{ plan: "pro" }, [1]],
  [{ access: "read" }, [1]],
  [{ plan: "pro", access: "write" }, []],
  [{ owner: "ann@EXAMPLE.com" }, [1]],
  [{ owner: "ÉMILE" }, [3]],
  [{ owner: "émile" }, [3]],
  [{ owner: "mile" }, []],
  [{ owner: "example.com" }, []],
  [{ owner: "Ann_example.com" }, []],
  [{ owner: "" }, []],
  [{ label: "eu" }, [1]],
  [{ label: "e" }, []],
  [{ label: 'A "B" \\ C' }, [2]],
  [{ label: "grÖSSe" }, []],
  [{ label: "GRÖßE" }, [3]],
  [{ unusedSince: NOW - 8 }, [2, 4, 6, 7, 5]],
  [{ unusedSince: AT + 1, plan: "free" }, [4, 6, 7, 5]],
  [{ isRevoked: true }, [5]],
  [{ isRevoked: false }, [1, 2, 3, 4, 6, 7]],
  [{ isRevoked: true, plan: "pro" }, []],
  [{ ids: [5, 3, 99] }, [3, 5]],
  [{ ids: [] }, []],
  [{ ids: [1, 2, 3], state: "active" }, [1, 3]],
  [{ expiresBefore: NOW + 9 }, [7]],
  [{ expiresBefore: NOW + 8 }, []],
  [{ deprecatedSince: NOW - 5 }, [1]],
  [{ deprecatedSince: NOW - 4 }, []],
  [{ search: "mobile" }, [1]],
  [{ search: " app " }, [1]],
  [{ search: "EXAMPLE" }, [1]],
  [{ search: "INTERN" }, [1]],
  [{ search: "österREICH" }, [3]],
  [{ search: "ÉM" }, [3]],
  [{ search: "RÖß" }, [3]],
  [{ search: "ö[" }, []],
  [{ search: "%" }, [4]],
  [{ search: "0%_S" }, [4]],
  [{ search: "0%_s_" }, []],
  [{ search: "[X]" }, [4]],
  [{ search: '"B" \\' }, [2]],
  [{ search: "," }, [2]],
  [{ search: '"]' }, []],
  [{ search: "3" }, [3]],
  [{ search: "03" }, []],
  [{ search: "" }, ALL],
  [{ search: "  " }, ALL],
  [{ search: "nobody" }, []],
  [{ search: "ab3d" }, [1]],
  [{ search: "X9kq" }, [1, 2]],
  [{ search: "ab3d…x" }, [1]],
  [{ search: "z_9…" }, [2]],
  [{ search: "b_d…" }, []],
  [{ search: "B3d" }, []],
  [{ search: "x9kq", plan: "business", state: "banned" }, [2]],
];

const ORDERS: readonly [sort: NonNullable<KeyListQuery["sort"]>, ids: readonly number[]][] = [
  ["id", ALL],
  ["name", [4, 1, 7, 6, 2, 3, 5]],
  ["plan", [2, 3, 4, 6, 7, 1, 5]],
  ["createdAt", [1, 2, 3, 6, 7, 4, 5]],
  ["lastUsedAt", [6, 7, 4, 2, 3, 1, 5]],
  ["usedToday", [4, 6, 7, 1, 3, 2, 5]],
];

const USED_TODAY = [
  [3, 4],
  [2, 9],
  [1, 3],
  [5, 10],
  [99, 1],
] as const;

/** Lists of keys: filters, orders, pages and totals. */
export function keyListConformance(test: TestCase): void {
  const list = async (keys: KeyStore, query: Partial<KeyListQuery>) => {
    const known = { bannedKeys: [2, 5, 99], usedToday: USED_TODAY };
    const page = await keys.listKeys({ limit: 100, now: NOW, ...known, ...query });
    return { ...page, ids: page.items.map(({ id }) => id) };
  };

  test("listKeys: an empty store has an empty page", async ({ keys }) => {
    const counts = { active: 0, banned: 0, disabled: 0, expired: 0, revoked: 0 };
    const empty = { items: [], total: 0, counts, hasMore: false };
    expect(await keys.listKeys({ limit: 1, now: NOW })).toEqual(empty);
  });

  test("listKeys: filters and searches, in upper or lower case, of ASCII letters and others", async (stores) => {
    await fill(stores);
    for (const [filter, ids] of FILTERS) {
      const page = await list(stores.keys, { filter });
      expect([filter, page.ids]).toEqual([filter, [...ids]]);
      expect(page.total).toBe(ids.length);
    }
  });

  test("listKeys: counts the keys of each state that match the other filters", async (stores) => {
    await fill(stores);
    const counts = { active: 3, banned: 1, disabled: 1, expired: 1, revoked: 1 };
    expect(await list(stores.keys, { limit: 1 })).toMatchObject({ total: 7, counts });
    expect(await list(stores.keys, { filter: { state: "banned" } })).toMatchObject({ total: 1, counts });
    expect(await list(stores.keys, { filter: { isRevoked: false } })).toMatchObject({ total: 6, counts });
    const free = { ...counts, active: 2, banned: 0 };
    expect(await list(stores.keys, { filter: { plan: "free" } })).toMatchObject({ counts: free });
  });

  test("listKeys: every combination of what a state depends on has the state that the key itself has", async ({
    keys,
  }) => {
    const bannedKeys: number[] = [];
    let created = 0;
    for (const revokedAt of [undefined, AT, NOW + 1])
      for (const expiresAt of [undefined, NOW - 1, NOW, NOW + 1])
        for (const disabledAt of [undefined, AT, NOW + 1])
          for (const isBanned of [false, true]) {
            const times = { ...(expiresAt && { expiresAt }), ...(disabledAt && { disabledAt }) };
            const key = { name: "app", plan: "free", createdAt: AT, ...times } as const;
            const { id } = await keys.createKey(key, { hash: hash(created++), hint: "…" }, BY);
            if (revokedAt !== undefined) await keys.updateKey(id, { revokedAt }, BY);
            if (isBanned) bannedKeys.push(id);
          }
    const query = { limit: 100, now: NOW, bannedKeys };
    const all = (await keys.listKeys(query)).items;
    const byState = Map.groupBy(all, (key) =>
      keyState(key, { isBanned: bannedKeys.includes(key.id), now: NOW }),
    );
    expect([...byState.keys()].toSorted()).toEqual([...KEY_STATES]);
    expect(all).toHaveLength(created);
    for (const [state, expected] of byState) {
      const { items, total, counts } = await keys.listKeys({ ...query, filter: { state } });
      expect<unknown>([state, items, total]).toEqual([state, expected, expected.length]);
      expect(counts[state]).toBe(expected.length);
    }
  });

  test("listKeys: a hint is found until its secret ends", async (stores) => {
    await fill(stores);
    const { keys } = stores;
    const secret = { hash: hash(99), hint: "pet_live_new0…new1", overlapEndsAt: NOW };
    await keys.addSecret(1, secret, BY);
    const found = async (search: string, now: number) => (await list(keys, { filter: { search }, now })).ids;
    expect(await found("x9kq", NOW - 1)).toEqual([1, 2]);
    expect(await found("x9kq", NOW)).toEqual([2]);
    expect(await found("new1", NOW)).toEqual([1]);
  });

  test("listKeys: every order, ascending and descending; pages follow each other without gap or repetition", async (stores) => {
    await fill(stores);
    for (const [sort, ascending] of ORDERS) {
      for (const isDescending of [false, true]) {
        const ids: number[] = [];
        let page = await list(stores.keys, { sort, isDescending, limit: 2 });
        ids.push(...page.ids);
        while (page.hasMore) {
          expect(page).toMatchObject({ total: 7, items: { length: 2 } });
          page = await list(stores.keys, { sort, isDescending, limit: 2, after: ids.at(-1) });
          ids.push(...page.ids);
        }
        // Keys that compare as equal are in the order of their identifiers, or all of it backwards. Key 5 is revoked.
        const valid = ascending.slice(0, -1);
        expect([sort, ids]).toEqual([sort, [...(isDescending ? valid.toReversed() : valid), 5]]);
      }
    }
  });

  test("listKeys: a page continues after a key that does not match the filter; after an unknown key it is the first", async (stores) => {
    await fill(stores);
    const filter = { plan: "free" } as const;
    const page = await list(stores.keys, { filter, after: 2, limit: 2 });
    expect(page).toMatchObject({ ids: [3, 4], total: 5, hasMore: true });
    expect((await list(stores.keys, { filter, sort: "name", after: 1 })).ids).toEqual([7, 6, 3, 5]);
    expect((await list(stores.keys, { after: 99, limit: 2 })).ids).toEqual([1, 2]);
  });

  test("getKeys: those of the keys that exist", async (stores) => {
    await fill(stores);
    const found = await stores.keys.getKeys([3, 1, 99]);
    const expected = [await stores.keys.getKey(1), await stores.keys.getKey(3)];
    expect<unknown>(found.toSorted((a, b) => a.id - b.id)).toStrictEqual(expected);
    expect(await stores.keys.getKeys([])).toEqual([]);
    const many = Array.from({ length: 1_000 }, (_, i) => i);
    expect(await stores.keys.getKeys(many)).toHaveLength(7);
  });
}
