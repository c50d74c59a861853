import { type Contents, contentsOf } from "../../src/archive/contents.ts";
import type { Counters, TableStore } from "../../src/store/tables.ts";

/** Without the audit entry of a copy if the counters of its source are given. */
export async function contentsIn(store: TableStore, sourceCounters?: Counters): Promise<Contents> {
  await using reader = await store.read();
  return await contentsOf(reader, { sourceCounters });
}
