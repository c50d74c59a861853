import type { UsageStore } from "../../src/domain/ports.ts";
import type { Subject, Usage } from "../../src/domain/rate-limit.ts";
import { textOf } from "../subjects.ts";

type Row = readonly [Subject, Usage];

/** A usage store in a Map, which can be made to fail and counts its saves. */
export class MapUsageStore implements UsageStore {
  /** How many rows each save had. */
  readonly saves: number[] = [];
  error: Error | undefined;
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

  save(changes: Iterable<readonly [Subject, Usage | undefined]>): void {
    const list = [...changes];
    this.saves.push(list.length);
    for (const resolve of this.#waiting) resolve();
    this.#waiting.clear();
    if (this.error) throw this.error;
    for (const [subject, usage] of list) {
      if (usage === undefined) this.#rows.delete(textOf(subject));
      else this.#rows.set(textOf(subject), [subject, structuredClone(usage)]);
    }
  }

  find(subject: Subject): Usage | undefined {
    return this.#rows.get(textOf(subject))?.[1];
  }

  close(): void {}

  /** Resolves after the next save at which the condition holds. */
  async until(condition: () => boolean): Promise<void> {
    while (!condition()) await new Promise<void>((resolve) => this.#waiting.add(resolve));
  }
}
