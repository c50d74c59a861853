import type { NewPet, OrderStatus, Pet } from "./resources.ts";
import type { ApiKey, KeySecret } from "./api-keys.ts";
import type { NewAuditEntry } from "./audit.ts";
import type { Awaitable } from "../api/awaitable.ts";
import type { OrderWithKey } from "./corrections.ts";
import type { UsageInterval, UsageRow } from "./usage-history.ts";

/** What an import does with a row whose identifier exists already. */
export const CONFLICT_RULES = ["reject", "skip", "replace"] as const;
export type ConflictRule = (typeof CONFLICT_RULES)[number];

/** Leaves more identifiers for new pets and orders than will ever be assigned. */
export const MAX_KEPT_ID = 2n ** 62n;

/** A pet of an import. A pet with an identifier keeps it. */
export type ImportedPet = NewPet & { readonly id?: bigint };

/** An order of an import. The time is milliseconds since the epoch; an order without a key belongs to none. */
export interface ImportedOrder {
  readonly id?: bigint;
  readonly petId: bigint;
  readonly status: OrderStatus;
  readonly createdAt: number;
  readonly keyId: number | null;
}

/** Why a row is rejected: a sentence without a full stop that begins with the name of a field. */
export type RowProblem = string;

/** How far an import has come. It is stored in the transaction of each batch, so that it continues where it was. */
export interface ImportProgress {
  /** Rows of the file that are done, rejected ones too. */
  readonly rows: number;
  readonly added: number;
  readonly replaced: number;
  readonly skipped: number;
  readonly rejected: number;
  /** Length of the file of rejected rows. */
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

/** An import of one file. Times are milliseconds since the epoch. */
export interface ImportRecord {
  /** What is imported, and the SHA-256 of the file. */
  readonly fingerprint: string;
  /** The path of the file, or - for standard input. */
  readonly source: string;
  /** The options that have to be the same when the import continues. */
  readonly options: string;
  readonly startedAt: number;
  readonly finishedAt?: number;
  readonly progress: ImportProgress;
}

/** What became of the rows of a batch. */
export interface BatchResult {
  readonly added: number;
  readonly replaced: number;
  readonly skipped: number;
  /** By the index of the row in the batch, ascending. */
  readonly rejected: ReadonlyMap<number, RowProblem>;
}

export interface ImportBatch<Row> {
  readonly rows: readonly Row[];
  readonly onConflict: ConflictRule;
  /** Undefined for a trial: nothing of the batch is stored. */
  readonly commit?: {
    readonly fingerprint: string;
    /** Rows that are done before this batch: another process may be importing the same file. */
    readonly rowsBefore: number;
    /** Is called before the commit, and again if the transaction has to be repeated. */
    readonly progressAfter: (result: BatchResult) => ImportProgress;
  };
}

/** Another process imports the same file at the same time. */
export class ConcurrentImport extends Error {}

/**
 * Adds many pets or orders. Each batch is one short transaction together with its progress, so that servers can write
 * in between. Running servers show imported pets within a second. Identifiers that are assigned grow in the order of
 * the rows.
 */
export interface ImportStore {
  /** A batch of so many rows is stored in a few milliseconds, for which the writes of servers wait. */
  readonly rowsPerBatch: number;
  findImport(fingerprint: string): Awaitable<ImportRecord | undefined>;
  /** The latest import of this path that is not finished. */
  findUnfinishedImport(source: string): Awaitable<ImportRecord | undefined>;
  /**
   * Replaces an earlier record of the same file. Throws ConcurrentImport if that is an import with the same options
   * that has stored rows and is not finished.
   */
  beginImport(record: Omit<ImportRecord, "progress" | "finishedAt">): Promise<void>;
  /** Throws ConcurrentImport if the rows done are not `rowsBefore`. */
  importPets(batch: ImportBatch<ImportedPet>): Promise<BatchResult>;
  /** Throws ConcurrentImport if the rows done are not `rowsBefore`. */
  importOrders(batch: ImportBatch<ImportedOrder>): Promise<BatchResult>;
  /** Resolves when everything that was imported is durable. */
  finishImport(fingerprint: string, entry: NewAuditEntry): Promise<void>;
  close(): Promise<void>;
}

/** A secret as it is stored, with its SHA-256 in hexadecimal. */
export interface StoredSecret extends KeySecret {
  readonly hash: string;
}

export interface ExportedKey {
  readonly key: ApiKey;
  readonly secrets: readonly StoredSecret[];
}

/**
 * Everything as it was at one instant, whatever servers write meanwhile. Each iteration has its own instant, reads a
 * bounded number of rows at a time, and ends its transaction when it is left.
 */
export interface ExportStore {
  /** In ascending order of identifiers. */
  pets(): AsyncIterable<readonly Pet[]>;
  orders(): AsyncIterable<readonly OrderWithKey[]>;
  keys(): AsyncIterable<readonly ExportedKey[]>;
  /** In order of the interval and the key. */
  usage(by: UsageInterval): AsyncIterable<readonly UsageRow[]>;
  close(): Promise<void>;
}
