import type { Standing, Subject } from "../../src/domain/rate-limit.ts";
import type { Ledger } from "../../src/domain/ports.ts";

type Changes = Iterable<readonly [Subject, Standing | undefined]>;

/** A ledger in a Map, which can be told to fail and tells of its saves. */
export class MapLedger implements Ledger {
  readonly rows = new Map<Subject, Standing>();
  /** How many rows each save brought. */
  readonly saves: number[] = [];
  fault: Error | undefined;
  readonly #waiting = new Set<() => void>();

  load(): Iterable<readonly [Subject, Standing]> {
    return structuredClone([...this.rows]);
  }

  save(changes: Changes): void {
    const list = [...changes];
    this.saves.push(list.length);
    this.#tell();
    if (this.fault) throw this.fault;
    for (const [subject, standing] of list) {
      if (standing === undefined) this.rows.delete(subject);
      else this.rows.set(subject, standing);
    }
  }

  find(subject: Subject): Standing | undefined {
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
