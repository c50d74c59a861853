import { describe, expect, test } from "bun:test";
import type { SettingsStore } from "../../src/domain/ports.ts";

interface OpenedSettings {
  readonly settings: SettingsStore;
  /** The same settings, opened once more, as by another process. */
  another(): Promise<SettingsStore>;
  close(): Promise<void>;
}

export function settingsStoreConformance(name: string, open: () => Promise<OpenedSettings>): void {
  describe(`settings on ${name}`, () => {
    test("there are none at first; saved ones are read by every process", async () => {
      const opened = await open();
      expect(await opened.settings.readSettings()).toEqual({});
      const settings = { "free-limits": "60/1000", "public-url": "http://127.0.0.1:8080/v1" };
      await opened.settings.saveSettings(settings);
      expect(await opened.settings.readSettings()).toEqual(settings);
      expect(await (await opened.another()).readSettings()).toEqual(settings);
      await opened.close();
    });

    test("saving replaces the given values and keeps the others", async () => {
      const { settings, close } = await open();
      await settings.saveSettings({ a: "1", b: "2" });
      await settings.saveSettings({ b: 'it\'s "3"', c: "" });
      expect(await settings.readSettings()).toEqual({ a: "1", b: 'it\'s "3"', c: "" });
      await settings.saveSettings({});
      expect(Object.keys(await settings.readSettings())).toHaveLength(3);
      await close();
    });

    test("processes that save at the same time all succeed, and one of them wins", async () => {
      const opened = await open();
      const stores = [opened.settings, ...(await Promise.all([1, 2, 3].map(() => opened.another())))];
      const saved = (n: number) => (n % 2 ? { a: `${n}`, b: `${n}` } : { b: `${n}`, a: `${n}` });
      await Promise.all(stores.map((store, n) => store.saveSettings(saved(n))));
      const { a, b } = await opened.settings.readSettings();
      expect(a).toBe(b ?? "");
      await opened.close();
    });
  });
}
