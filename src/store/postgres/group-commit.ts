import { Unavailable } from "../../contract/errors.ts";
import { nextTurn } from "./turns.ts";

export interface GroupCommitOptions<Entry, Answer> {
  /** All of them in one transaction: an answer for each, or an error and nothing done. */
  readonly run: (entries: readonly Entry[]) => Promise<ReadonlyMap<Entry, Answer>>;
  readonly maxWaiting: number;
  readonly maxWaitMs: number;
}

interface Waiting<Entry, Answer> {
  readonly entry: Entry;
  readonly since: number;
  resolve(answer: Answer): void;
  reject(reason: unknown): void;
}

/** Each entry with an Idempotency-Key takes a place in the server's table of locks, which has some 6,400 by default. */
const MAX_BATCH = 128;

/**
 * Group commit. One batch is under way at a time, and what arrives meanwhile makes up the next: the busier it gets, the
 * more writes share a commit.
 */
export class GroupCommit<Entry, Answer> {
  readonly #options: GroupCommitOptions<Entry, Answer>;
  readonly #waiting: Waiting<Entry, Answer>[] = [];
  #running: Promise<void> | undefined;
  #closed = false;

  constructor(options: GroupCommitOptions<Entry, Answer>) {
    this.#options = options;
  }

  submit(entry: Entry): Promise<Answer> {
    if (this.#closed) return Promise.reject(new Unavailable("the store is closed"));
    if (this.#waiting.length >= this.#options.maxWaiting) {
      return Promise.reject(new Unavailable(`${this.#waiting.length} writes are waiting already`));
    }
    return new Promise((resolve, reject) => {
      this.#waiting.push({ entry, since: performance.now(), resolve, reject });
      this.#running ??= this.#work();
    });
  }

  /** Turns new writes away, and waits until those accepted are settled. */
  async close(): Promise<void> {
    this.#closed = true;
    await this.#running;
  }

  async #work(): Promise<void> {
    // Requests that one turn of the event loop delivers share the first batch too.
    await nextTurn();
    while (this.#waiting.length > 0) await this.#settle(this.#next());
    this.#running = undefined;
  }

  /** Nobody is helped by a write that is done long after its caller was told that it was not. */
  #next(): Waiting<Entry, Answer>[] {
    const oldest = performance.now() - this.#options.maxWaitMs;
    const batch = this.#waiting.splice(0, MAX_BATCH);
    for (const { since, reject } of batch) {
      if (since < oldest)
        reject(new Unavailable(`waited more than ${this.#options.maxWaitMs} ms for its turn`));
    }
    return batch.filter(({ since }) => since >= oldest);
  }

  async #settle(batch: readonly Waiting<Entry, Answer>[]): Promise<void> {
    if (batch.length === 0) return;
    try {
      const answers = await this.#options.run(batch.map(({ entry }) => entry));
      for (const { entry, resolve, reject } of batch) {
        const answer = answers.get(entry);
        if (answer === undefined) reject(new Error("a write of the batch has no answer"));
        else resolve(answer);
      }
    } catch (error) {
      await this.#divide(batch, error);
    }
  }

  /** One write at fault must not take the others with it; halving finds it in few transactions. */
  async #divide(batch: readonly Waiting<Entry, Answer>[], error: unknown): Promise<void> {
    if (batch.length === 1 || error instanceof Unavailable) {
      for (const { reject } of batch) reject(error);
      return;
    }
    const middle = batch.length >> 1;
    await this.#settle(batch.slice(0, middle));
    await this.#settle(batch.slice(middle));
  }
}
