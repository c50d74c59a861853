/* Copies all tables of a database into a new one, and verifies the copy. */

import type { NewTables, TableReader } from "../store/sql/table-store.ts";
import { contentsOf, differencesBetween } from "./contents.ts";
import type { OnProgress } from "./progress.ts";

interface FillOptions<Target extends NewTables> {
  readonly source: TableReader;
  readonly to: { create(): Promise<Target> };
  /** The name that the present database gets; undefined if there is none. */
  readonly replaced?: string | undefined;
  /** Called when the copy is verified and not yet visible to others. */
  readonly beforePublish?: (target: Target) => Promise<void>;
  readonly onProgress?: OnProgress | undefined;
}

/**
 * Copies all tables into a new database, compares the number and the checksum of the rows of both, and publishes the
 * new one in one step.
 */
export async function fillNewTables<Target extends NewTables>({
  source,
  to,
  replaced,
  beforePublish,
  onProgress,
}: FillOptions<Target>): Promise<void> {
  await using target = await to.create();
  const contents = await contentsOf(source, { step: "copying", onProgress, onBatch: target.insert });
  await target.complete(contents.counters);
  {
    await using copy = await target.read();
    const copied = await contentsOf(copy, { step: "comparing", onProgress });
    const different = differencesBetween(contents, copied);
    if (different.length > 0) throw new Error(`the copy differs from its source in ${different.join(", ")}`);
  }
  await beforePublish?.(target);
  await source.confirm?.();
  await target.publish({ replaced });
}
