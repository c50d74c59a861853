import type { SettingsStore } from "../../domain/ports.ts";
import type { Pools } from "./connections/pools.ts";

export class PostgresSettingsStore implements SettingsStore {
  constructor(private readonly pools: Pools) {}

  async saveSettings(settings: Readonly<Record<string, string>>): Promise<void> {
    // In one order, so that instances that start together do not deadlock.
    const rows = Object.entries(settings)
      .map(([name, value]) => ({ name, value }))
      .toSorted((a, b) => (a.name < b.name ? -1 : 1));
    if (rows.length === 0) return;
    await this.pools.writes.transaction(
      (tx) =>
        tx`INSERT INTO server_settings ${tx(rows)} ON CONFLICT (name) DO UPDATE SET value = excluded.value`,
    );
  }

  async readSettings(): Promise<Readonly<Record<string, string>>> {
    const rows = await this.pools.reads.query(
      (sql) => sql<{ name: string; value: string }[]>`SELECT name, value FROM server_settings ORDER BY name`,
    );
    return Object.fromEntries(rows.map(({ name, value }) => [name, value]));
  }
}
