import { Late } from "./postgres-errors.ts";

/** The time that a piece of work may take. */
export class QueryTimeout {
  readonly #late = Promise.withResolvers<never>();
  #timer: Timer | undefined;
  #isOver = false;

  constructor(ms: number) {
    this.#set(ms);
  }

  race<T>(work: Promise<T>): Promise<T> {
    return Promise.race([work, this.#late.promise]);
  }

  /** From now on that much. Throws when it is over: whoever waits for the work has been told that it was not done. */
  renew(ms: number): void {
    if (this.#isOver) throw new Late("too late to begin");
    clearTimeout(this.#timer);
    this.#set(ms);
  }

  end(): void {
    this.#isOver = true;
    clearTimeout(this.#timer);
  }

  #set(ms: number): void {
    this.#timer = setTimeout(() => this.#late.reject(new Late(`no answer within ${ms} ms`)), ms);
  }
}
