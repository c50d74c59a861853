/* Copies all tables of a database into a new one, and verifies the copy. */

import type { NewAuditEntry } from "../domain/audit.ts";
import type { NewTables, TableReader, TableStore } from "../store/sql/table-store.ts";
import { type Contents, contentsOf, differencesBetween } from "./contents.ts";
import type { OnProgress } from "./progress.ts";

/** `same` means that an earlier copy has finished, `other` that the target has its own data and nothing was copied. */
export interface TableCopy {
  readonly outcome: "copied" | "same" | "other";
  readonly contents: Contents;
}

interface CopyOptions extends Omit<FillOptions, "source" | "replaced"> {
  readonly from: TableStore;
}

/** Copies all tables into a new database. If it is interrupted at any time, the same call begins again. */
export async function copyTables({ from, ...options }: CopyOptions): Promise<TableCopy> {
  const { to, onProgress } = options;
  await using source = await from.read();
  if (!(await to.exists()))
    return { contents: await fillNewTables({ ...options, source }), outcome: "copied" };
  const contents = await contentsOf(source, { step: "reading", onProgress });
  await using target = await to.read();
  const { counters } = contents;
  const found = await contentsOf(target, { step: "comparing", onProgress, sourceCounters: counters });
  return { contents, outcome: differencesBetween(contents, found).length === 0 ? "same" : "other" };
}

interface FillOptions {
  readonly source: TableReader;
  readonly to: TableStore;
  /** The entry for the audit trail of the new database. */
  readonly entry?: NewAuditEntry;
  /** The name that the present database gets; undefined if there is none. */
  readonly replaced?: string | undefined;
  /** Called when the copy is verified and not yet visible to others. */
  readonly beforePublish?: (source: TableReader, target: NewTables) => Promise<void>;
  readonly onProgress?: OnProgress | undefined;
}

/**
 * Copies all tables into a new database, compares the number and the checksum of the rows of both, and publishes the
 * new one in one step.
 */
export async function fillNewTables({
  source,
  to,
  entry,
  replaced,
  beforePublish,
  onProgress,
}: FillOptions): Promise<Contents> {
  await using target = await to.create();
  const contents = await contentsOf(source, { step: "copying", onProgress, onBatch: target.insert });
  await target.complete(contents.counters);
  {
    await using copy = await target.read();
    const copied = await contentsOf(copy, { step: "comparing", onProgress });
    const different = differencesBetween(contents, copied);
    if (different.length > 0) throw new Error(`the copy differs from its source in ${different.join(", ")}`);
  }
  await beforePublish?.(source, target);
  await source.confirm();
  await target.publish({ entry, replaced });
  return contents;
}
