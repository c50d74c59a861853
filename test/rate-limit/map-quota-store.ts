import type { QuotaStore } from "../../src/domain/ports/rate-limiter.ts";
import type { Subject, Quota } from "../../src/domain/rate-limit.ts";
import { textOf } from "../subjects.ts";

type Row = readonly [Subject, Quota];

/** A quota store in a Map, which can be made to fail and counts its saves. */
export class MapQuotaStore implements QuotaStore {
  /** How many rows each save had. */
  readonly saves: number[] = [];
  error: Error | undefined;
  isClosed = false;
  readonly #rows = new Map<string, Row>();
  readonly #waiting = new Set<() => void>();

  get size(): number {
    return this.#rows.size;
  }

  get rows(): readonly Row[] {
    return [...this.#rows.values()];
  }

  load(): Iterable<Row> {
    return structuredClone(this.rows);
  }

  save(changes: Iterable<readonly [Subject, Quota | undefined]>): void {
    const list = [...changes];
    this.saves.push(list.length);
    for (const resolve of this.#waiting) resolve();
    this.#waiting.clear();
    if (this.error) throw this.error;
    for (const [subject, quota] of list) {
      if (quota === undefined) this.#rows.delete(textOf(subject));
      else this.#rows.set(textOf(subject), [subject, structuredClone(quota)]);
    }
  }

  find(subject: Subject): Quota | undefined {
    return this.#rows.get(textOf(subject))?.[1];
  }

  close(): void {
    this.isClosed = true;
  }

  /** Resolves after the next save at which the condition holds. */
  async until(condition: () => boolean): Promise<void> {
    while (!condition()) await new Promise<void>((resolve) => this.#waiting.add(resolve));
  }
}
