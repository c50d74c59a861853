import { atEndOfTurn } from "../event-loop.ts";

/** A connection with responses to write. */
export interface ResponseWriter {
  writeResponses(): void;
}

/**
 * Writes the responses of several connections one right after the other. A write wakes a client that waits, and that
 * takes longer than the rest of the write; of a batch, most clients are threads that the first write has woken. With 32
 * connections (`wrk -t1 -c32`), `GET /v1/pets` takes 19 µs of CPU time instead of 30, and a create 40 instead of 47.
 */
export class ResponseBatch {
  readonly #connections: ResponseWriter[] = [];
  #isEndOfTurnAwaited = false;
  #areMicrotasksAwaited = false;

  /** At the end of this turn of the event loop there are the responses to all requests that it brought. */
  add(connection: ResponseWriter): void {
    this.#connections.push(connection);
    if (this.#isEndOfTurnAwaited) return;
    this.#isEndOfTurnAwaited = true;
    atEndOfTurn(() => {
      this.#isEndOfTurnAwaited = false;
      this.write();
    });
  }

  /**
   * Does not wait for the end of the turn. When a database has committed several writes, the microtasks that are queued
   * already complete their responses.
   */
  writeAfterMicrotasks(): void {
    if (this.#areMicrotasksAwaited) return;
    this.#areMicrotasksAwaited = true;
    queueMicrotask(() => {
      this.#areMicrotasksAwaited = false;
      this.write();
    });
  }

  write(): void {
    for (const connection of this.#connections.splice(0)) connection.writeResponses();
  }
}
