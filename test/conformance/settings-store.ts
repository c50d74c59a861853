import { expect } from "bun:test";
import type { TestCase } from "./store-fixture.ts";

export function settingsStoreConformance(test: TestCase): void {
  test("there are none at first; saving replaces the given values and keeps the others, for every process", async (opened) => {
    const { settings, another } = opened;
    expect(await settings.readSettings()).toEqual({});
    await settings.saveSettings({ a: "1", b: "http://127.0.0.1:8080/v1" });
    await settings.saveSettings({ b: 'it\'s "3"', c: "" });
    await settings.saveSettings({});
    const expected = { a: "1", b: 'it\'s "3"', c: "" };
    expect(await settings.readSettings()).toEqual(expected);
    expect(await (await another()).settings.readSettings()).toEqual(expected);
  });

  test("of processes that save at the same time one wins", async (opened) => {
    const { settings, another } = opened;
    const stores = [settings];
    for (let n = 0; n < 3; n++) stores.push((await another()).settings);
    const saved = (n: number) => (n % 2 ? { a: `${n}`, b: `${n}` } : { b: `${n}`, a: `${n}` });
    await Promise.all(stores.map((store, n) => store.saveSettings(saved(n))));
    const { a, b } = await settings.readSettings();
    expect(a).toBe(b ?? "");
  });

  test("readTime: the time of the database, if it has a clock of its own", async ({ settings }) => {
    const before = Date.now();
    const time = (await settings.readTime()) ?? before;
    // PostgreSQL rounds it to milliseconds.
    expect(time).toBeWithin(before - 1, Date.now() + 2);
  });
}
