import type { NewAuditEntry } from "../domain/audit.ts";
import { type Counters, type TableReader, TABLES, type TableWriter } from "../store/tables.ts";
import { Steps, type WorkProgress } from "./steps.ts";
import { type Contents, contentsOf, countRows, differencesBetween, fingerprintOf } from "./contents.ts";

/** The time per row, in comparison with each other. */
const COSTS = { read: 1, insert: 3, compare: 1 } as const;

/** A database of one environment, which may not exist yet. */
export interface CopyEnd {
  exists(): Promise<boolean>;
  /** Migrates it first if an earlier release made it. */
  read(): Promise<TableReader>;
  /** Continues an interrupted copy of the same source, or begins a new one. */
  write(source: string): Promise<TableWriter>;
}

export interface CopyOptions {
  readonly from: CopyEnd;
  readonly to: CopyEnd;
  /** Called when the copy is verified and nobody sees it yet. */
  readonly beforePublish: (source: TableReader) => Promise<void>;
  /** Recorded in the audit trail of the copy. */
  readonly entry: NewAuditEntry;
  /** In rows. */
  readonly onProgress?: (progress: WorkProgress) => void;
}

export interface CopyResult {
  readonly contents: Contents;
  /** `same`: an earlier copy has finished. `other`: the target has data of its own, and nothing was copied. */
  readonly outcome: "copied" | "same" | "other";
}

/**
 * Copies all tables into a new database, compares the number and the checksum of the rows of both, and publishes the
 * new one with an audit entry in one step. Whenever it is interrupted, the same call finishes it.
 */
export async function copyStore({
  from,
  to,
  beforePublish,
  entry,
  onProgress = () => {},
}: CopyOptions): Promise<CopyResult> {
  const source = await from.read();
  try {
    const isPresent = await to.exists();
    const rows = await countRows(source);
    const cost = COSTS.read + COSTS.compare + (isPresent ? 0 : COSTS.insert);
    const steps = new CopySteps(rows, new Steps(rows * cost, onProgress));
    const contents = await steps.run("reading", COSTS.read, (onRows) => contentsOf(source, { onRows }));
    if (isPresent) return { contents, outcome: (await isSame(contents, to, steps)) ? "same" : "other" };
    const writer = await to.write(fingerprintOf(contents));
    try {
      await steps.run("copying", COSTS.insert, (onRows) => insertRows(source, writer, onRows));
      await writer.setCounters(contents.counters);
      await writer.addSums();
      await verify(contents, writer, steps);
      await beforePublish(source);
      if (source.hasChanged?.()) throw new Error("another command has written to the source meanwhile");
      await writer.publish(entry);
    } finally {
      await writer.close();
    }
    return { contents, outcome: "copied" };
  } finally {
    await source.close();
  }
}

/** Each goes through all rows. */
class CopySteps {
  constructor(
    private readonly rows: number,
    private readonly steps: Steps,
  ) {}

  run<T>(name: string, costPerRow: number, work: (onRows: (rows: number) => void) => Promise<T>): Promise<T> {
    return this.steps.run({ name, cost: this.rows * costPerRow }, (report) =>
      work((done) => report(done / Math.max(1, this.rows), done)),
    );
  }
}

/** The source has the same rows in the same order as when an earlier call inserted the first ones. */
async function insertRows(
  source: TableReader,
  writer: TableWriter,
  onRows: (rows: number) => void,
): Promise<void> {
  let done = 0;
  for (const table of TABLES) {
    let skipped = await writer.insertedRows(table);
    for await (const rows of source.rows(table)) {
      const missing = rows.slice(skipped);
      skipped -= rows.length - missing.length;
      if (missing.length > 0) await writer.insert(table, missing);
      onRows((done += rows.length));
    }
  }
}

async function verify(contents: Contents, writer: TableWriter, steps: CopySteps): Promise<void> {
  const copy = await readAndClose(await writer.read(), steps);
  const different = differencesBetween(contents, copy);
  if (different.length > 0) throw new Error(`the copy differs from its source in ${different.join(", ")}`);
}

async function isSame(contents: Contents, to: CopyEnd, steps: CopySteps): Promise<boolean> {
  const copy = await readAndClose(await to.read(), steps, contents.counters);
  return differencesBetween(contents, copy).length === 0;
}

async function readAndClose(
  reader: TableReader,
  steps: CopySteps,
  sourceCounters?: Counters,
): Promise<Contents> {
  try {
    return await steps.run("comparing", COSTS.compare, (onRows) =>
      contentsOf(reader, { onRows, ...(sourceCounters && { sourceCounters }) }),
    );
  } finally {
    await reader.close();
  }
}
