import type { ValueStore } from "../domain/ports/stored-values.ts";
import type { Awaitable } from "../runtime/awaitable.ts";
import { numberRowsOf, rowsOf, type SqlDatabase } from "./sql/steps.ts";

const INSERT = "INSERT INTO server_settings (name, value) VALUES (?, ?) ON CONFLICT (name)";
export const SAVE_VALUE = `${INSERT} DO UPDATE SET value = excluded.value`;

export class SqlValueStore implements ValueStore {
  constructor(private readonly database: SqlDatabase) {}

  saveValues(values: Readonly<Record<string, string>>): Promise<void> {
    // All servers write the values in the same order, so that two that start together do not deadlock.
    const entries = Object.entries(values).toSorted(([a], [b]) => (a < b ? -1 : 1));
    return this.database.write(function* () {
      for (const [name, value] of entries) yield* rowsOf(SAVE_VALUE, name, value);
    });
  }

  readValues(): Awaitable<Readonly<Record<string, string>>> {
    return this.database.read(function* () {
      const rows = yield* rowsOf<{ name: string; value: string }>("SELECT name, value FROM server_settings");
      return Object.fromEntries(rows.map(({ name, value }) => [name, value]));
    });
  }

  readTime(): Awaitable<number | undefined> {
    const { hasOwnClock, now } = this.database.dialect;
    if (!hasOwnClock) return undefined;
    return this.database.read(function* () {
      const [row] = yield* numberRowsOf<{ now: number }>(`SELECT ${now} AS now`);
      return row?.now;
    });
  }
}
