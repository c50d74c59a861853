import type { Usage, Subject } from "../../src/domain/rate-limit.ts";
import type { UsageStore } from "../../src/domain/ports.ts";

type Changes = Iterable<readonly [Subject, Usage | undefined]>;

/** A usageStore in a Map, which can be told to fail and tells of its saves. */
export class MapUsageStore implements UsageStore {
  readonly rows = new Map<Subject, Usage>();
  /** How many rows each save brought. */
  readonly saves: number[] = [];
  fault: Error | undefined;
  readonly #waiting = new Set<() => void>();

  load(): Iterable<readonly [Subject, Usage]> {
    return structuredClone([...this.rows]);
  }

  save(changes: Changes): void {
    const list = [...changes];
    this.saves.push(list.length);
    this.#tell();
    if (this.fault) throw this.fault;
    for (const [subject, usage] of list) {
      if (usage === undefined) this.rows.delete(subject);
      else this.rows.set(subject, usage);
    }
  }

  find(subject: Subject): Usage | undefined {
    return this.rows.get(subject);
  }

  close(): void {}

  /** Resolves after the next save at which this holds. */
  async until(holds: () => boolean): Promise<void> {
    while (!holds()) await new Promise<void>((resolve) => this.#waiting.add(resolve));
  }

  #tell(): void {
    for (const resolve of this.#waiting) resolve();
    this.#waiting.clear();
  }
}
