import { expect } from "bun:test";
import type { TestCase } from "./store-fixture.ts";

export function valueStoreConformance(test: TestCase): void {
  test("there are none at first; saving replaces the given values and keeps the others, for every process", async (opened) => {
    const { storedValues, another } = opened;
    expect(await storedValues.readValues()).toEqual({});
    await storedValues.saveValues({ a: "1", b: "http://127.0.0.1:8080/v1" });
    await storedValues.saveValues({ b: 'it\'s "3"', c: "" });
    await storedValues.saveValues({});
    const expected = { a: "1", b: 'it\'s "3"', c: "" };
    expect(await storedValues.readValues()).toEqual(expected);
    expect(await (await another()).storedValues.readValues()).toEqual(expected);
  });

  test("of processes that save at the same time one wins", async (opened) => {
    const { storedValues, another } = opened;
    const stores = [storedValues];
    for (let n = 0; n < 3; n++) stores.push((await another()).storedValues);
    const saved = (n: number) => (n % 2 ? { a: `${n}`, b: `${n}` } : { b: `${n}`, a: `${n}` });
    await Promise.all(stores.map((store, n) => store.saveValues(saved(n))));
    const { a, b } = await storedValues.readValues();
    expect(a).toBe(b ?? "");
  });

  test("readTime: the time of the database, if it has a clock of its own", async ({ storedValues }) => {
    const before = Date.now();
    const time = (await storedValues.readTime()) ?? before;
    // PostgreSQL rounds it to milliseconds.
    expect(time).toBeWithin(before - 1, Date.now() + 2);
  });
}
