import { type Contents, contentsOf } from "../../src/archive/contents.ts";
import type { Counters, TableStore } from "../../src/store/sql/table-store.ts";

/** Reads the contents of a database. With the counters of its source, the audit entry of a copy is left out. */
export async function contentsIn(store: TableStore, sourceCounters?: Counters): Promise<Contents> {
  await using reader = await store.read();
  return await contentsOf(reader, { sourceCounters });
}
