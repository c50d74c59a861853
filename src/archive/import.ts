import { yieldToEventLoop } from "../runtime/scheduler.ts";
import type { InputFile } from "./files.ts";
import { Invalid, type InputProblem } from "../api/schema.ts";
import { type BatchResult, type ConflictRule, type ImportedPet, importedPetSchema } from "./imported-pets.ts";
import type { ImportProgress, ImportStore } from "./import-store.ts";
import { type RejectedRow, RejectsFile, type RejectsFormat } from "./rejects-file.ts";
import { csvRowParser, jsonRowParser, type RowParser } from "./row-parser.ts";
import { delimiterOf, RowReader, type SourceRow } from "./row-reader.ts";

interface ImporterOptions {
  readonly input: InputFile;
  /** Whether rows have the identifiers that they keep. */
  readonly keepsIds: boolean;
  readonly onConflict: ConflictRule;
  /** The number of rejected rows that are tolerated. The import stops at the next one. */
  readonly maxErrors: number;
  /** The store; undefined without a database, so that rows are only validated. */
  readonly store: ImportStore | undefined;
  /** The record of progress and rejected rows; undefined for a trial. */
  readonly commit: { readonly fingerprint: string; readonly rejectsPath: string } | undefined;
  readonly from: ImportProgress;
  readonly onRejected: (rejected: RejectedRow) => void;
  readonly onProgress: (progress: ImportProgress, bytesRead: number) => void;
  /** Whether to stop after the current batch. */
  readonly isStopped: () => boolean;
}

/** The number of rows in a batch without a database. */
const ROWS_PER_TRIAL = 1_000;

export interface ImportResult {
  readonly end: "complete" | "too many errors" | "stopped";
  readonly progress: ImportProgress;
}

/** Reads, validates and stores the rows of a file, beginning with the row that `from` names. */
export async function importPets(options: ImporterOptions): Promise<ImportResult> {
  using importer = new Importer(options);
  return { end: await importer.run(), progress: importer.progress };
}

class Importer {
  progress: ImportProgress;
  readonly #options: ImporterOptions;
  #parser: RowParser | undefined;
  #rejects: RejectsFile | undefined;
  #bytesRead = 0;
  /** The rows of the current batch. The next fields have their sources and the number of invalid ones. */
  #rows: (ImportedPet | Invalid)[] = [];
  #sources: SourceRow[] = [];
  #invalid = 0;

  constructor(options: ImporterOptions) {
    this.#options = options;
    this.progress = options.from;
  }

  async run(): Promise<ImportResult["end"]> {
    let rowsToSkip = this.progress.rows;
    const rowsPerBatch = this.#options.store?.rowsPerBatch ?? ROWS_PER_TRIAL;
    if (this.#hasTooManyErrors) return "too many errors";
    for await (const rows of this.#read()) {
      for (const row of rows.slice(rowsToSkip)) {
        this.#add(row);
        if (this.#rows.length >= rowsPerBatch) await this.#store();
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
    return this.progress.rejected + this.#invalid > this.#options.maxErrors;
  }

  /** Reads the rows of the file, one piece at a time, without the header. */
  async *#read(): AsyncGenerator<readonly SourceRow[]> {
    const { input, keepsIds } = this.#options;
    const schema = importedPetSchema({ keepsIds });
    const texts = input.texts((bytes) => (this.#bytesRead = bytes));
    const { value: first } = await texts.next();
    const beginning = first ?? "";
    const delimiter = delimiterOf(beginning);
    const reader = new RowReader(delimiter);
    if (delimiter === undefined) this.#prepare(jsonRowParser(schema), { delimiter });
    const withoutHeader = (rows: SourceRow[]) => {
      const [firstRow] = rows;
      if (this.#parser !== undefined || firstRow === undefined) return rows;
      const { cells: header = [] } = firstRow;
      this.#prepare(csvRowParser(schema, header), { delimiter, header });
      return rows.slice(1);
    };
    yield withoutHeader(reader.push(beginning));
    for await (const text of texts) yield withoutHeader(reader.push(text));
    yield withoutHeader(reader.end());
  }

  #prepare(parser: RowParser, format: RejectsFormat): void {
    this.#parser = parser;
    const path = this.#options.commit?.rejectsPath;
    if (path !== undefined) this.#rejects = new RejectsFile(path, format);
  }

  #add(source: SourceRow): void {
    const row = this.#parser?.parse(source) ?? new Invalid([]);
    if (row instanceof Invalid) this.#invalid++;
    this.#rows.push(row);
    this.#sources.push(source);
  }

  /** Renames the fields in the problems to their names in the file. */
  #named({ problems }: Invalid): readonly InputProblem[] {
    return problems.map(({ path, message }) => ({
      path: path.map((key) => this.#parser?.nameOf(String(key)) ?? key),
      message,
    }));
  }

  async #store(): Promise<void> {
    const [rows, sources] = [this.#rows, this.#sources];
    if (rows.length === 0) return;
    const { commit, store, onConflict, onProgress, onRejected } = this.#options;
    const before = this.progress;
    let after = before;
    let rejected: readonly RejectedRow[] = [];
    const progressAfter = (result: BatchResult) => {
      rejected = sources.flatMap((row, index) => {
        const invalid = result.rejected.get(index);
        return invalid === undefined ? [] : [{ row, problems: this.#named(invalid) }];
      });
      after = {
        rows: before.rows + rows.length,
        added: before.added + result.added,
        replaced: before.replaced + result.replaced,
        skipped: before.skipped + result.skipped,
        rejected: before.rejected + rejected.length,
        rejectsBytes: this.#rejects?.write(before.rejectsBytes, rejected) ?? 0,
      };
      return after;
    };
    const batch = { rows, onConflict };
    if (store && commit) {
      const { fingerprint } = commit;
      await store.importPets(batch, { fingerprint, rowsBefore: before.rows, progressAfter });
    } else progressAfter(store ? await store.importPets(batch) : validityOf(rows));
    this.progress = after;
    this.#rows = [];
    this.#sources = [];
    this.#invalid = 0;
    for (const each of rejected) onRejected(each);
    onProgress(after, this.#bytesRead);
    // This allows signals to arrive.
    await yieldToEventLoop();
  }
}

/**
 * The results that need no database. Repeated identifiers are not detected, because not all rows are in memory at once.
 */
function validityOf(rows: readonly (ImportedPet | Invalid)[]): BatchResult {
  const rejected = new Map<number, Invalid>();
  for (const [index, row] of rows.entries()) if (row instanceof Invalid) rejected.set(index, row);
  return { added: rows.length - rejected.size, replaced: 0, skipped: 0, rejected };
}
