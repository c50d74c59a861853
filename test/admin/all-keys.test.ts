import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { AllKeys } from "../../src/operator/handlers/all-keys.ts";
import { generateSecret, toNewSecret } from "../../src/domain/api-keys.ts";
import type { KeyStore } from "../../src/domain/ports.ts";
import { openSqlite, type SqliteStores } from "../../src/store/sqlite/sqlite-store.ts";
import { BY } from "../key-store-arguments.ts";
import { temporaryFolder } from "../store/temporary-folder.ts";

let folder: ReturnType<typeof temporaryFolder>;
let stores: SqliteStores;
beforeEach(() => {
  folder = temporaryFolder();
  stores = openSqlite(folder.path("store.db"));
});
afterEach(async () => {
  await stores.close();
  folder.remove();
});

const create = (name: string) => {
  const key = { name, plan: "free", createdAt: 0 } as const;
  return stores.keys.createKey(key, toNewSecret(generateSecret("production")), BY);
};

/** Counts how often all keys are read. */
function counting(keys: KeyStore) {
  const counts = { keys: 0 };
  const all = new AllKeys({
    changesSince: (revision) => keys.changesSince(revision),
    listKeys: () => (counts.keys++, keys.listKeys()),
  });
  return { all, counts };
}

describe("all keys", () => {
  test("are read once, then only what has changed", async () => {
    await create("one");
    const { all, counts } = counting(stores.keys);
    expect(await all.keys()).toEqual(await stores.keys.listKeys());
    const { id } = await create("two");
    await stores.keys.updateKey(1, { name: "renamed" }, BY);
    expect((await all.keys()).map(({ name }) => name)).toEqual(["renamed", "two"]);
    await stores.keys.updateKey(id, { revokedAt: 5 }, BY);
    expect(await all.keys()).toEqual(await stores.keys.listKeys());
    expect(counts.keys).toBe(1);
  });

  test("reads that overlap see every change", async () => {
    const { all } = counting(stores.keys);
    const [first, , second] = await Promise.all([all.keys(), create("one"), all.keys()]);
    expect(first.length).toBeLessThanOrEqual(second.length);
    expect(await all.keys()).toHaveLength(1);
  });

  test("after an error the next read works", async () => {
    let isBroken = true;
    const all = new AllKeys({
      changesSince: (revision) => {
        if (isBroken) throw new Error("gone");
        return stores.keys.changesSince(revision);
      },
      listKeys: () => stores.keys.listKeys(),
    });
    await expect(all.keys()).rejects.toThrow("gone");
    isBroken = false;
    expect(await all.keys()).toEqual([]);
  });
});
