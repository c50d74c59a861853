import type { Ledger } from "../../domain/ports.ts";
import type { Row } from "./write-behind.ts";

/** A ledger whose faults are told, once each time it begins to fail, and never thrown at a request. */
export class Book {
  readonly #ledger: Ledger;
  readonly #onFault: ((error: unknown) => void) | undefined;
  #failing = false;
  #open = true;
  /** What went wrong the last time that something did. */
  fault: unknown;

  constructor(ledger: Ledger, onFault?: (error: unknown) => void) {
    this.#ledger = ledger;
    this.#onFault = onFault;
  }

  readonly save = (rows: readonly Row[]): boolean => {
    if (!this.#open) return false;
    try {
      this.#ledger.save(rows);
      this.#failing = false;
      return true;
    } catch (error) {
      this.fault = error;
      if (!this.#failing) this.#onFault?.(error);
      this.#failing = true;
      return false;
    }
  };

  close(): void {
    this.#open = false;
    this.#ledger.close();
  }
}
