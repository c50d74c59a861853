import type { Statement } from "bun:sqlite";
import type { SettingsStore } from "../../domain/ports.ts";
import type { Connection } from "./connection.ts";
import { translateErrors } from "./sqlite-errors.ts";

export class SqliteSettingsStore implements SettingsStore {
  readonly #all: Statement<{ name: string; value: string }, []>;
  readonly #put: Statement<unknown, [string, string]>;

  constructor(private readonly connection: Connection) {
    this.#all = connection.prepare("SELECT name, value FROM server_settings");
    this.#put = connection.prepare("INSERT OR REPLACE INTO server_settings (name, value) VALUES (?, ?)");
  }

  saveSettings(settings: Readonly<Record<string, string>>): Promise<void> {
    return this.connection.transactionWhenUnlocked(() => {
      for (const [name, value] of Object.entries(settings)) this.#put.run(name, value);
    });
  }

  readSettings(): Readonly<Record<string, string>> {
    const rows = translateErrors(() => this.#all.all());
    return Object.fromEntries(rows.map(({ name, value }) => [name, value]));
  }
}
