import { type TableReader, TABLES, type TableWriter } from "../store/tables.ts";
import { type Contents, contentsOf, differencesBetween, fingerprintOf } from "./contents.ts";

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
}

export interface CopyResult {
  readonly contents: Contents;
  /** `same`: an earlier copy has finished. `other`: the target has data of its own, and nothing was copied. */
  readonly outcome: "copied" | "same" | "other";
}

/**
 * Copies all tables into a new database, compares the number and the checksum of the rows of both, and publishes the
 * new one in one step. Whenever it is interrupted, the same call finishes it.
 */
export async function copyStore({ from, to, beforePublish }: CopyOptions): Promise<CopyResult> {
  const source = await from.read();
  try {
    const contents = await contentsOf(source);
    if (await to.exists()) {
      return { contents, outcome: (await isSame(contents, to)) ? "same" : "other" };
    }
    const writer = await to.write(fingerprintOf(contents));
    try {
      await insertRows(source, writer);
      await writer.setCounters(contents.counters);
      await writer.addSums();
      await verify(contents, writer);
      await beforePublish(source);
      if (source.hasChanged?.()) throw new Error("another command has written to the source meanwhile");
      await writer.publish();
    } finally {
      await writer.close();
    }
    return { contents, outcome: "copied" };
  } finally {
    await source.close();
  }
}

/** The source has the same rows in the same order as when an earlier call inserted the first ones. */
async function insertRows(source: TableReader, writer: TableWriter): Promise<void> {
  for (const table of TABLES) {
    let skipped = await writer.insertedRows(table);
    for await (const rows of source.rows(table)) {
      const missing = rows.slice(skipped);
      skipped -= rows.length - missing.length;
      if (missing.length > 0) await writer.insert(table, missing);
    }
  }
}

async function verify(contents: Contents, writer: TableWriter): Promise<void> {
  const copy = await writer.read();
  try {
    const different = differencesBetween(contents, await contentsOf(copy));
    if (different.length > 0) throw new Error(`the copy differs from its source in ${different.join(", ")}`);
  } finally {
    await copy.close();
  }
}

async function isSame(contents: Contents, to: CopyEnd): Promise<boolean> {
  const reader = await to.read();
  try {
    return differencesBetween(contents, await contentsOf(reader)).length === 0;
  } finally {
    await reader.close();
  }
}
