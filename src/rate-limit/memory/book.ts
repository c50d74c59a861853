import type { UsageStore } from "../../domain/ports.ts";
import type { Row } from "./write-behind.ts";

/** A usageStore whose faults are told, once each time it begins to fail, and never thrown at a request. */
export class Book {
  readonly #usageStore: UsageStore;
  readonly #onFault: ((error: unknown) => void) | undefined;
  #failing = false;
  #open = true;
  /** What went wrong the last time that something did. */
  fault: unknown;

  constructor(usageStore: UsageStore, onFault?: (error: unknown) => void) {
    this.#usageStore = usageStore;
    this.#onFault = onFault;
  }

  readonly save = (rows: readonly Row[]): boolean => {
    if (!this.#open) return false;
    try {
      this.#usageStore.save(rows);
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
    this.#usageStore.close();
  }
}
