import { Overloaded } from "../../api/errors.ts";
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

/**
 * Looks secrets up together: those that arrive while a query runs share the next one, so a single look-up never waits.
 * Anybody can cause look-ups, and a query costs PostgreSQL and this process nearly the same for one secret as for many.
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
    while (this.#queue.length > 0) await this.#findAll(this.#queue.splice(0, MAX_PER_QUERY));
    this.#isRunning = false;
  }

  async #findAll(lookUps: readonly LookUp[]): Promise<void> {
    try {
      const found = await this.#options.find(lookUps.map(({ secretHash }) => secretHash));
      for (const { secretHash, resolve } of lookUps) resolve(found.get(secretHash));
    } catch (error) {
      for (const { reject } of lookUps) reject(error);
    }
  }
}
