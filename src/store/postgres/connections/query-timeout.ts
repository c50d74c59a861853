/** The server has not responded in time. */
export class QueryTimeoutError extends Error {
  override readonly name = "QueryTimeoutError";
}

/** Bounds how long a query or a transaction is waited for. */
export class QueryTimeout {
  readonly #timedOut = Promise.withResolvers<never>();
  #timer: Timer | undefined;
  #isOver = false;

  constructor(ms: number) {
    this.#start(ms);
  }

  race<T>(work: Promise<T>): Promise<T> {
    return Promise.race([work, this.#timedOut.promise]);
  }

  /** Starts the time again. Throws after `clear`: the caller has already been told that the work failed. */
  restart(ms: number): void {
    if (this.#isOver) throw new QueryTimeoutError("the transaction began after its timeout");
    clearTimeout(this.#timer);
    this.#start(ms);
  }

  clear(): void {
    this.#isOver = true;
    clearTimeout(this.#timer);
  }

  #start(ms: number): void {
    const timeOut = () => this.#timedOut.reject(new QueryTimeoutError(`no response within ${ms} ms`));
    this.#timer = setTimeout(timeOut, ms);
  }
}
