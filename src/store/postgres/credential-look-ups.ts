import { Overloaded } from "../../contract/errors.ts";
import type { Credential } from "../../domain/api-keys.ts";

export interface CredentialLookUpsOptions {
  /** Finds credentials by the hashes of their secrets, in one query. Hashes that no key has are left out. */
  find(secretHashes: readonly string[]): Promise<ReadonlyMap<string, Credential>>;
  readonly maxQueued: number;
}

interface LookUp {
  readonly secretHash: string;
  resolve(credential: Credential | undefined): void;
  reject(reason: unknown): void;
}

/** The list of hashes is one parameter of the query. */
const MAX_PER_QUERY = 64;
/** After a query with a secret that no key has. */
const PAUSE_MS = 10;

/**
 * Looks secrets up together: those that arrive while a query runs share the next one. Anybody can cause look-ups, and a
 * query costs PostgreSQL and this process nearly the same for one secret as for many.
 *
 * Secrets that no key has are looked up more slowly. Otherwise clients that guess, each from another address, take so
 * much time that other requests wait for 100 ms (`npm run attacks -- --engines shared --only many-addresses`).
 */
export class CredentialLookUps {
  readonly #options: CredentialLookUpsOptions;
  readonly #queue: LookUp[] = [];
  #isRunning = false;

  constructor(options: CredentialLookUpsOptions) {
    this.#options = options;
  }

  find(secretHash: string): Promise<Credential | undefined> {
    if (this.#queue.length >= this.#options.maxQueued) {
      return Promise.reject(
        new Overloaded(`the queue for PostgreSQL is full (${this.#queue.length} look-ups)`),
      );
    }
    return new Promise((resolve, reject) => {
      this.#queue.push({ secretHash, resolve, reject });
      if (!this.#isRunning) void this.#run();
    });
  }

  async #run(): Promise<void> {
    this.#isRunning = true;
    while (this.#queue.length > 0) {
      const areAllKnown = await this.#findAll(this.#queue.splice(0, MAX_PER_QUERY));
      if (!areAllKnown) await Bun.sleep(PAUSE_MS);
    }
    this.#isRunning = false;
  }

  /** Whether every secret is that of a key, as far as PostgreSQL told. */
  async #findAll(lookUps: readonly LookUp[]): Promise<boolean> {
    try {
      const found = await this.#options.find(lookUps.map(({ secretHash }) => secretHash));
      for (const { secretHash, resolve } of lookUps) resolve(found.get(secretHash));
      return lookUps.every(({ secretHash }) => found.has(secretHash));
    } catch (error) {
      for (const { reject } of lookUps) reject(error);
      return true;
    }
  }
}
