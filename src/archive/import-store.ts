/*
 * Stores imports of many pets. Each batch is one short transaction together with its progress, so that
 * servers can write in between and no row is stored twice. Running servers show imported pets within a second.
 */

import type { NewAuditEntry } from "../domain/audit.ts";
import { DAY_MS } from "../text/time-units.ts";
import { DAILY_USAGE_DAYS } from "../domain/usage-history.ts";
import { addAudit } from "../store/audit.ts";
import { rowsOf, type Steps } from "../store/sql/steps.ts";
import { appendRows, type FieldsOf, findRows, upsertRows } from "../store/sql/table-rows.ts";
import { PET_ROWS } from "../store/sql/rows.ts";
import { IMPORTS, PETS } from "../store/sql/tables.ts";
import type { SharedTables } from "../store/sql/table-store.ts";
import { type BatchResult, type ImportedPet, type PetBatch, resolveConflicts } from "./imported-pets.ts";

/** The progress of an import. */
export interface ImportProgress extends Omit<BatchResult, "rejected"> {
  /** The number of rows of the file that are done, including rejected ones. */
  readonly rows: number;
  readonly rejected: number;
  /** The length of the file of rejected rows. */
  readonly rejectsBytes: number;
}

export const NO_PROGRESS: ImportProgress = {
  rows: 0,
  added: 0,
  replaced: 0,
  skipped: 0,
  rejected: 0,
  rejectsBytes: 0,
};

/** The record of an import of one file. Times are in milliseconds since the epoch. */
interface ImportRecord {
  /** `pets:` and the SHA-256 of the file. */
  readonly fingerprint: string;
  /** The path of the file, or - for standard input. */
  readonly source: string;
  /** The options that must be the same when the import continues. */
  readonly options: string;
  readonly startedAt: number;
  readonly finishedAt?: number;
  readonly progress: ImportProgress;
}

/** How long the record of a finished import is kept: as long as the usage history. */
const FINISHED_IMPORTS_MS = DAILY_USAGE_DAYS * DAY_MS;
/**
 * Deletes the records of imports that finished so long before the new one, and before the last that has finished: a
 * machine whose clock is years ahead deletes none.
 */
const DELETE_FINISHED = `DELETE FROM imports WHERE finished_at < ? AND finished_at <
  (SELECT max(finished_at) FROM imports) - ${FINISHED_IMPORTS_MS}`;

export interface ImportCommit {
  readonly fingerprint: string;
  /** The number of rows that were done before this batch. It detects another process that imports the same file. */
  readonly rowsBefore: number;
  /** Called before the commit, and again if the transaction is repeated. */
  readonly progressAfter: (result: BatchResult) => ImportProgress;
}

/** Another process is importing the same file at the same time. */
export class ConcurrentImport extends Error {
  override readonly message = "another process imports the same file";
}

const valuesOf = (pet: ImportedPet) => PET_ROWS.valuesOf(pet);

export class ImportStore {
  readonly rowsPerBatch: number;

  constructor(private readonly tables: SharedTables) {
    this.rowsPerBatch = tables.rowsPerTransaction;
  }

  findImport(fingerprint: string): Promise<ImportRecord | undefined> {
    return this.tables.write(() => findRecord(this.tables, fingerprint));
  }

  /** Finds the latest unfinished import of this path. */
  async findUnfinishedImport(source: string): Promise<ImportRecord | undefined> {
    const query = { by: "source", values: [source], where: "finished_at IS NULL" };
    const rows = await this.tables.write(() => findRows(this.tables, IMPORTS, query));
    return rows.map(recordOf).toSorted((a, b) => b.startedAt - a.startedAt)[0];
  }

  /**
   * Begins an import, and replaces an earlier record of the same file. Throws ConcurrentImport if that record is an
   * unfinished import with the same options that has stored rows. Deletes records that are too old.
   */
  beginImport(record: Omit<ImportRecord, "progress" | "finishedAt">): Promise<void> {
    const { tables } = this;
    return tables.write(function* () {
      const found = yield* findRecord(tables, record.fingerprint);
      const isContinued = found?.finishedAt === undefined && found?.options === record.options;
      if (isContinued && found.progress.rows > 0) throw new ConcurrentImport();
      yield* rowsOf(DELETE_FINISHED, record.startedAt - FINISHED_IMPORTS_MS);
      yield* saveRecord(tables, { ...record, progress: NO_PROGRESS });
    });
  }

  /**
   * Imports a batch. Without `commit`, nothing is stored. Throws ConcurrentImport unless `rowsBefore` rows are done.
   */
  importPets(batch: PetBatch, commit?: ImportCommit): Promise<BatchResult> {
    const { tables } = this;
    return tables.write(function* () {
      const record = commit && (yield* findRecord(tables, commit.fingerprint));
      if (record?.progress.rows !== commit?.rowsBefore || record?.finishedAt !== undefined)
        throw new ConcurrentImport();
      const { numbered, unnumbered, result } = yield* resolveConflicts(tables, batch);
      if (commit === undefined || record === undefined) return result;
      const keepingIds = Array.from(numbered, ([id, pet]) => [id, ...valuesOf(pet)]);
      yield* upsertRows(tables, PETS, keepingIds);
      yield* appendRows(tables, PETS, unnumbered.map(valuesOf));
      yield* saveRecord(tables, { ...record, progress: commit.progressAfter(result) });
      return result;
    });
  }

  /** Completes an import. Resolves when everything that was imported is durable. */
  async finishImport(fingerprint: string, entry: NewAuditEntry): Promise<void> {
    const { tables } = this;
    await tables.makeDurable();
    await tables.write(function* () {
      const record = yield* findRecord(tables, fingerprint);
      if (record) yield* saveRecord(tables, { ...record, finishedAt: entry.at });
      yield* addAudit(entry);
    });
  }
}

function* findRecord(tables: SharedTables, fingerprint: string): Steps<ImportRecord | undefined> {
  const query = { by: "fingerprint", values: [fingerprint], isLocked: true };
  const [row] = yield* findRows(tables, IMPORTS, query);
  return row && recordOf(row);
}

function recordOf(row: FieldsOf<typeof IMPORTS>): ImportRecord {
  return {
    fingerprint: row.fingerprint ?? "",
    source: row.source ?? "",
    options: row.options ?? "",
    startedAt: Number(row.started_at),
    ...(row.finished_at !== null && { finishedAt: Number(row.finished_at) }),
    progress: {
      rows: Number(row.rows_done),
      added: Number(row.added),
      replaced: Number(row.replaced),
      skipped: Number(row.skipped),
      rejected: Number(row.rejected),
      rejectsBytes: Number(row.rejects_bytes),
    },
  };
}

function saveRecord(tables: SharedTables, record: ImportRecord): Steps<void> {
  const { fingerprint, source, options, startedAt, finishedAt = null, progress } = record;
  const { rows, added, replaced, skipped, rejected, rejectsBytes } = progress;
  const counts = [rows, added, replaced, skipped, rejected, rejectsBytes];
  return upsertRows(tables, IMPORTS, [[fingerprint, source, options, startedAt, finishedAt, ...counts]]);
}
