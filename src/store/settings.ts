import type { SettingsStore } from "../domain/ports.ts";
import type { Awaitable } from "../event-loop.ts";
import { rowsOf, type SqlDatabase } from "./statements.ts";

const INSERT = "INSERT INTO server_settings (name, value) VALUES (?, ?) ON CONFLICT (name)";

export class SqlSettingsStore implements SettingsStore {
  constructor(private readonly database: SqlDatabase) {}

  saveSettings(settings: Readonly<Record<string, string>>): Promise<void> {
    // In one order, so that instances that start together do not deadlock.
    const entries = Object.entries(settings).toSorted(([a], [b]) => (a < b ? -1 : 1));
    return this.database.write(function* () {
      for (const [name, value] of entries)
        yield* rowsOf(`${INSERT} DO UPDATE SET value = excluded.value`, name, value);
    });
  }

  readSettings(): Awaitable<Readonly<Record<string, string>>> {
    return this.database.read(function* () {
      const rows = yield* rowsOf<{ name: string; value: string }>("SELECT name, value FROM server_settings");
      return Object.fromEntries(rows.map(({ name, value }) => [name, value]));
    });
  }

  async saveIfMissing(name: string, value: string): Promise<string> {
    const saved = (await this.readSettings())[name];
    if (saved !== undefined) return saved;
    await this.database.write(() => rowsOf(`${INSERT} DO NOTHING`, name, value));
    return (await this.readSettings())[name] ?? value;
  }
}
