import { CsvReader } from "./csv-reader.ts";
import { JsonArrayReader } from "./json-array-reader.ts";
import { JsonLinesReader } from "./json-lines-reader.ts";
import type { RowReader } from "./source-row.ts";

export type InputFormat = "ndjson" | "json" | "csv";

/** By the first character: an array, an object on each line, or otherwise CSV. */
export function formatOf(text: string): InputFormat {
  const first = text.trimStart()[0];
  if (first === "[") return "json";
  return first === "{" ? "ndjson" : "csv";
}

export function createRowReader(format: InputFormat, delimiter: string): RowReader {
  if (format === "json") return new JsonArrayReader();
  return format === "ndjson" ? new JsonLinesReader() : new CsvReader(delimiter);
}

const DELIMITERS = [",", ";", "\t", "|"];

/** The one that the first line has most often, quoted cells aside. */
export function delimiterOf(text: string): string {
  const [line = ""] = text.trimStart().split(/\r?\n/, 1);
  const unquoted = line.replace(/"[^"]*"/g, "");
  const counts = DELIMITERS.map((delimiter) => unquoted.split(delimiter).length);
  return DELIMITERS[counts.indexOf(Math.max(...counts))] ?? ",";
}
