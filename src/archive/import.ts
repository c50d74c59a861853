import { yieldToEventLoop } from "../event-loop.ts";
import type { InputFile } from "./files.ts";
import type { BatchResult, ConflictRule, ImportBatch, ImportProgress } from "./import-store.ts";
import { type RejectedRow, RejectsFile, type RejectsFormat } from "./rejects-file.ts";
import {
  type ColumnMapping,
  csvRowParser,
  type ImportedRow,
  jsonRowParser,
  type ParseRow,
  type RowType,
} from "./row-parser.ts";
import { createRowReader, delimiterOf, formatOf, type SourceRow } from "./row-formats.ts";

export interface ImporterOptions<Row extends ImportedRow> {
  readonly input: InputFile;
  readonly type: RowType<Row>;
  readonly map: readonly ColumnMapping[];
  readonly delimiter: string | undefined;
  readonly onConflict: ConflictRule;
  /** The import stops at the next rejected row. */
  readonly maxErrors: number;
  readonly rowsPerBatch: number;
  /** Stores a batch. Undefined without a database: rows are only validated. */
  readonly store: ((batch: ImportBatch<Row>) => Promise<BatchResult>) | undefined;
  /** Undefined for a trial. */
  readonly commit: { readonly fingerprint: string; readonly rejectsPath: string } | undefined;
  readonly from: ImportProgress;
  readonly onRejected: (rejected: RejectedRow) => void;
  readonly onProgress: (progress: ImportProgress, bytesRead: number) => void;
  /** Whether the import is to stop after the current batch. */
  readonly isStopped: () => boolean;
}

export type ImportEnd = "complete" | "too many errors" | "stopped";

/** Reads, validates and stores the rows of a file, from the row on that `from` names. */
export async function importRows<Row extends ImportedRow>(
  options: ImporterOptions<Row>,
): Promise<{ end: ImportEnd; progress: ImportProgress }> {
  using importer = new Importer(options);
  return { end: await importer.run(), progress: importer.progress };
}

class Importer<Row extends ImportedRow> {
  progress: ImportProgress;
  readonly #options: ImporterOptions<Row>;
  #parse: ParseRow<Row> | undefined;
  #rejects: RejectsFile | undefined;
  #bytesRead = 0;
  /** The batch: its rows, where each of them is from, and those that are not valid. */
  #rows: Row[] = [];
  #sources: SourceRow[] = [];
  #invalid: RejectedRow[] = [];

  constructor(options: ImporterOptions<Row>) {
    this.#options = options;
    this.progress = options.from;
  }

  async run(): Promise<ImportEnd> {
    let rowsToSkip = this.progress.rows;
    if (this.#hasTooManyErrors) return "too many errors";
    for await (const rows of this.#read()) {
      for (const row of rowsToSkip === 0 ? rows : rows.slice(rowsToSkip)) {
        this.#add(row);
        if (this.#rows.length + this.#invalid.length >= this.#options.rowsPerBatch) await this.#store();
        if (!this.#hasTooManyErrors) continue;
        await this.#store();
        return "too many errors";
      }
      rowsToSkip = Math.max(0, rowsToSkip - rows.length);
      if (this.#options.isStopped()) {
        await this.#store();
        return "stopped";
      }
    }
    await this.#store();
    return this.#hasTooManyErrors ? "too many errors" : "complete";
  }

  [Symbol.dispose](): void {
    this.#rejects?.close();
  }

  get #hasTooManyErrors(): boolean {
    return this.progress.rejected + this.#invalid.length > this.#options.maxErrors;
  }

  /** The rows of the file, a piece of it at a time, without the header. */
  async *#read(): AsyncGenerator<readonly SourceRow[]> {
    const { input, type, map } = this.#options;
    const texts = input.texts((bytes) => (this.#bytesRead = bytes));
    const { value: first } = await texts.next();
    const beginning = first ?? "";
    const format = formatOf(beginning);
    const delimiter = this.#options.delimiter ?? delimiterOf(beginning);
    const reader = createRowReader(format, delimiter);
    if (format !== "csv") this.#prepare(jsonRowParser(type, map), { format, delimiter });
    const withoutHeader = (rows: SourceRow[]) => {
      const [firstRow] = rows;
      if (this.#parse !== undefined || firstRow === undefined) return rows;
      const { parse, header, hasHeader } = csvRowParser(type, firstRow.cells ?? [], map);
      this.#prepare(parse, { format, delimiter, header });
      return hasHeader ? rows.slice(1) : rows;
    };
    yield withoutHeader(reader.push(beginning));
    for await (const text of texts) yield withoutHeader(reader.push(text));
    yield withoutHeader(reader.end());
  }

  #prepare(parse: ParseRow<Row>, format: RejectsFormat): void {
    this.#parse = parse;
    const path = this.#options.commit?.rejectsPath;
    if (path !== undefined) this.#rejects = new RejectsFile(path, format);
  }

  #add(source: SourceRow): void {
    const row = this.#parse?.(source);
    if (typeof row === "string") this.#invalid.push({ row: source, problem: row });
    else if (row !== undefined) {
      this.#rows.push(row);
      this.#sources.push(source);
    }
  }

  /** Stores the batch. */
  async #store(): Promise<void> {
    const [rows, sources, invalid] = [this.#rows, this.#sources, this.#invalid];
    if (rows.length + invalid.length === 0) return;
    const { commit, store, onConflict, onProgress, onRejected } = this.#options;
    const before = this.progress;
    let after = before;
    let rejected: readonly RejectedRow[] = [];
    const progressAfter = (result: BatchResult) => {
      rejected = rejectedOf(sources, invalid, result);
      after = {
        rows: before.rows + rows.length + invalid.length,
        added: before.added + result.added,
        replaced: before.replaced + result.replaced,
        skipped: before.skipped + result.skipped,
        rejected: before.rejected + rejected.length,
        rejectsBytes: this.#rejects?.write(before.rejectsBytes, rejected) ?? 0,
      };
      return after;
    };
    const batch = { rows, onConflict };
    if (store === undefined)
      progressAfter({ added: rows.length, replaced: 0, skipped: 0, rejected: new Map() });
    else if (commit === undefined) progressAfter(await store(batch));
    else {
      const { fingerprint } = commit;
      await store({ ...batch, commit: { fingerprint, rowsBefore: before.rows, progressAfter } });
    }
    this.progress = after;
    this.#rows = [];
    this.#sources = [];
    this.#invalid = [];
    for (const each of rejected) onRejected(each);
    onProgress(after, this.#bytesRead);
    // Lets signals in.
    await yieldToEventLoop();
  }
}

/** In the order of the file. */
function rejectedOf(
  sources: readonly SourceRow[],
  invalid: readonly RejectedRow[],
  { rejected }: BatchResult,
): readonly RejectedRow[] {
  if (rejected.size === 0) return invalid;
  const byStore = Array.from(rejected).flatMap(([index, problem]) => {
    const row = sources[index];
    return row ? [{ row, problem }] : [];
  });
  return [...invalid, ...byStore].toSorted((a, b) => a.row.line - b.row.line);
}
