import type { Statement } from "bun:sqlite";
import type { ChangeCounters } from "./change-counters.ts";
import type { Connection } from "../connection.ts";

/** A server knows of a change within a second, also when one poll is slow. */
const POLL_EVERY_MS = 250;

/**
 * The number of changes that operators have made to pets. A command changes them in a process of its own, so the server
 * reads this number a few times a second, and invalidates what it has cached when the number differs.
 *
 * `PRAGMA data_version` would not do: it changes with every commit of another connection, and a server has several.
 */
export class PetRevision {
  readonly #select: Statement<{ revision: bigint }, []>;
  readonly #increment: Statement<unknown, []>;
  #seen: bigint | undefined;

  constructor(
    connection: Connection,
    private readonly changes: ChangeCounters,
  ) {
    this.#select = connection.prepare("SELECT revision FROM pet_revision");
    this.#increment = connection.prepare("UPDATE pet_revision SET revision = revision + 1");
    this.#seen = this.#read();
  }

  /** Called in the transaction of a change. */
  increment(): void {
    this.#increment.run();
  }

  /** Invalidates the caches if the number has changed since the last call. */
  check(): void {
    const revision = this.#read();
    if (revision === this.#seen) return;
    this.#seen = revision;
    this.changes.everythingChanged();
  }

  /** Returns a function that stops it. */
  follow(): () => void {
    const timer = setInterval(() => this.#tryCheck(), POLL_EVERY_MS);
    timer.unref();
    return () => clearInterval(timer);
  }

  /** While the database cannot be read, requests report it, and the next poll tries again. */
  #tryCheck(): void {
    try {
      this.check();
    } catch {}
  }

  #read(): bigint | undefined {
    return this.#select.get()?.revision;
  }
}
