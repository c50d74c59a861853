import type { NewAuditEntry } from "../domain/audit.ts";
import type { SettingsStore } from "../domain/ports.ts";
import type { Awaitable } from "../runtime/event-loop.ts";
import { addAudit } from "./audit.ts";
import { rowsOf, type SqlDatabase } from "./statements.ts";

const INSERT = "INSERT INTO server_settings (name, value) VALUES (?, ?) ON CONFLICT (name)";
export const SAVE_SETTING = `${INSERT} DO UPDATE SET value = excluded.value`;

const INSERT_SECRET = "INSERT INTO server_secret (sole, secret) VALUES (1, ?) ON CONFLICT (sole)";

export class SqlSettingsStore implements SettingsStore {
  constructor(private readonly database: SqlDatabase) {}

  saveSettings(settings: Readonly<Record<string, string>>): Promise<void> {
    // All instances write the settings in the same order, so that two that start together do not deadlock.
    const entries = Object.entries(settings).toSorted(([a], [b]) => (a < b ? -1 : 1));
    return this.database.write(function* () {
      for (const [name, value] of entries) yield* rowsOf(SAVE_SETTING, name, value);
    });
  }

  readSettings(): Awaitable<Readonly<Record<string, string>>> {
    return this.database.read(function* () {
      const rows = yield* rowsOf<{ name: string; value: string }>("SELECT name, value FROM server_settings");
      return Object.fromEntries(rows.map(({ name, value }) => [name, value]));
    });
  }

  async openSecret(candidate: string): Promise<string> {
    const saved = await this.readSecret();
    if (saved !== undefined) return saved;
    await this.database.write(() => rowsOf(`${INSERT_SECRET} DO NOTHING`, candidate));
    return (await this.readSecret()) ?? candidate;
  }

  readSecret(): Awaitable<string | undefined> {
    return this.database.read(function* () {
      const [row] = yield* rowsOf<{ secret: string }>("SELECT secret FROM server_secret");
      return row?.secret;
    });
  }

  replaceSecret(secret: string, entry: NewAuditEntry): Promise<void> {
    return this.database.write(function* () {
      yield* rowsOf(`${INSERT_SECRET} DO UPDATE SET secret = excluded.secret`, secret);
      yield* addAudit(entry);
    });
  }
}
