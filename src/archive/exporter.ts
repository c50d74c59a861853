import { gzipSync } from "node:zlib";
import { TimeSlice } from "../event-loop.ts";
import type { Encoder } from "./encoders.ts";
import type { Output } from "./output.ts";

export interface ExportOptions<Item> {
  readonly pages: AsyncIterable<readonly Item[]>;
  readonly encoder: Encoder<Item>;
  readonly format: "ndjson" | "csv";
  readonly isGzip: boolean;
  readonly output: Output;
  readonly onProgress: (rows: number) => void;
  /** Whether the export is to end without its output. */
  readonly isStopped: () => boolean;
}

/** Bounds the memory. */
const PIECE_LENGTH = 64 * 1024;
/** A piece of gzip is compressed by itself, and this long it is compressed as well as a whole. */
const GZIP_PIECE_LENGTH = 1024 * 1024;

/** Returns the number of rows, or undefined if it was stopped. */
export async function exportRows<Item>(options: ExportOptions<Item>): Promise<number | undefined> {
  const { pages, encoder, format, isGzip, output, onProgress, isStopped } = options;
  const encode = format === "csv" ? encoder.csv : encoder.ndjson;
  const write = (text: string) => output.write(isGzip ? gzipSync(text) : text);
  let text = format === "csv" ? encoder.csvHeader : "";
  let rows = 0;
  // SQLite works without turns of the event loop, and without them no signal arrives.
  const timeSlice = new TimeSlice();
  for await (const items of pages) {
    await timeSlice.next();
    if (isStopped()) return undefined;
    for (const item of items) text += encode(item);
    rows += items.length;
    if (text.length < (isGzip ? GZIP_PIECE_LENGTH : PIECE_LENGTH)) continue;
    await write(text);
    text = "";
    onProgress(rows);
  }
  // An empty file is not gzip.
  if (text !== "" || (rows === 0 && isGzip)) await write(text);
  output.finish();
  return rows;
}
