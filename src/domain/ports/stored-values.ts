import type { Awaitable } from "../../runtime/awaitable.ts";

/** Texts that servers and commands store for one another, under the names of domain/stored-values.ts. */
export interface ValueStore {
  /** Replaces the values of the given names. */
  saveValues(values: Readonly<Record<string, string>>): Promise<void>;
  readValues(): Awaitable<Readonly<Record<string, string>>>;
  /** The time of the database in milliseconds since the epoch; undefined if it has no clock of its own. */
  readTime(): Awaitable<number | undefined>;
}
