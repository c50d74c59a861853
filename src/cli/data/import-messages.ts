import { describeEnvironment, storageOf } from "../../config/config.ts";
import { printable, quotedPath } from "../../config/usage-error.ts";
import { errorMessage } from "../arguments.ts";
import { statSync } from "node:fs";
import { formatTime, grouped } from "../../api/formatting.ts";
import type { ImportEnd } from "../../archive/import.ts";
import { InputError } from "../../archive/row-formats.ts";
import type { ImportProgress, ImportRecord } from "../../archive/import-store.ts";
import { type Context, Failure, type Outcome } from "../command.ts";
import { columns, json } from "../output.ts";
import type { InputFile } from "../../archive/files.ts";
import type { STORAGE_OPTIONS } from "../../config/options.ts";
import type { ValuesOf } from "../../config/parse-options.ts";
import type { IMPORT_OPTIONS } from "../../config/transfer-options.ts";

export type ImportValues = ValuesOf<typeof IMPORT_OPTIONS & typeof STORAGE_OPTIONS> & {
  readonly json: boolean;
};

/** One import of a file. */
export interface Import {
  /** As it was typed; - is standard input. */
  readonly path: string;
  readonly input: InputFile;
  readonly values: ImportValues;
  readonly context: Context;
  readonly kind: "pets" | "orders";
  readonly fingerprint: string;
  /** The absolute path, or -. */
  readonly source: string;
  readonly rejectsPath: string;
  /** The options that cannot change halfway. */
  readonly resumeOptions: string;
}

export function nameOf(path: string): string {
  return path === "-" ? "standard input" : printable(path);
}

/** Refuses an edited file: its rows would be stored twice. */
export function fileChanged(path: string, { progress }: ImportRecord): Failure {
  return new Failure(
    `${nameOf(path)} has changed since ${grouped(progress.rows)} rows of it were imported; import the earlier file to the end, or add --again to import this one from its beginning`,
  );
}

/** Where the next rejected row is written; `progress` is that of an import that continues. */
export function rejectsPosition(path: string, progress?: ImportProgress): number | Failure {
  const stats = statSync(path, { throwIfNoEntry: false });
  if (stats === undefined) return 0;
  const rejects = quotedPath(path);
  if (!stats.isFile()) {
    return new Failure(`${rejects} is not a regular file; choose another one with --rejects`);
  }
  if (progress === undefined) {
    return new Failure(
      `${rejects} has the rejected rows of another import; move it away or choose another file with --rejects`,
    );
  }
  if (stats.size >= progress.rejectsBytes) return progress.rejectsBytes;
  return new Failure(
    `${rejects} has changed since the import stopped; move it away or choose another file with --rejects for the next rejected rows`,
  );
}

/** Of an import that has stored rows. */
export function failureAfter(error: unknown, path: string, stored: number): Failure {
  const [name, rows] = [nameOf(path), grouped(stored)];
  return new Failure(
    error instanceof InputError
      ? `cannot import all of ${name}: ${error.message}; its first ${rows} rows are imported, so import the others from another file`
      : `stopped after ${rows} rows of ${name}: ${errorMessage(error)}; run the same command again to continue`,
  );
}

export function otherOptions(path: string, { options, progress }: ImportRecord): Failure {
  const earlier = options === "" ? "no such options" : options;
  return new Failure(
    `${grouped(progress.rows)} rows of ${nameOf(path)} were imported with other options (${earlier}); continue with those, or add --again to import it from its beginning`,
  );
}

/** How an import ended. */
export interface ImportEnded {
  readonly end: ImportEnd;
  readonly progress: ImportProgress;
  /** Rows that were done before. */
  readonly rowsBefore: number;
  readonly seconds: number;
  /** Set if the file was imported before. */
  readonly finishedAt?: number;
}

/** Undefined if every row was imported or skipped. */
export function outcomeOf({ path, values, rejectsPath }: Import, { end, progress }: ImportEnded): Outcome {
  const { rows, rejected } = progress;
  const { "dry-run": isDryRun, "max-errors": maxErrors } = values;
  if (end === "stopped") {
    const next = isDryRun ? "nothing was stored" : "run the same command again to continue";
    return new Failure(`interrupted after ${grouped(rows)} rows of ${nameOf(path)}; ${next}`);
  }
  if (rejected === 0) return undefined;
  const were = rejected === 1 ? "1 row was" : `${grouped(rejected)} rows were`;
  const them = rejected === 1 ? "it with its error" : "them with their errors";
  const where = isDryRun ? "" : `; ${quotedPath(rejectsPath)} has ${them}`;
  if (end === "complete") return new Failure(`${were} rejected${where}`);
  const remedy = isDryRun ? "" : "; a higher --max-errors continues the import";
  return new Failure(
    `stopped after ${grouped(rows)} rows of ${nameOf(path)}: ${were} rejected, and --max-errors is ${maxErrors}${where}${remedy}`,
  );
}

export function summaryJson({ kind, values, rejectsPath }: Import, ended: ImportEnded): string {
  const { rows, added, replaced, skipped, rejected } = ended.progress;
  const isDryRun = values["dry-run"];
  return json({
    kind,
    isComplete: ended.end === "complete",
    isDryRun,
    importedBefore: ended.finishedAt !== undefined,
    rows,
    added,
    replaced,
    skipped,
    rejected,
    rejects: rejected > 0 && !isDryRun ? rejectsPath : null,
    seconds: ended.seconds,
  });
}

export function summaryText(job: Import, { progress, rowsBefore, seconds, finishedAt }: ImportEnded): string {
  const { rows, added, replaced, skipped, rejected } = progress;
  const rate = grouped(Math.round((rows - rowsBefore) / Math.max(seconds, 0.001)));
  const optional = Object.entries({ Replaced: replaced, Skipped: skipped, Rejected: rejected });
  const table = [
    ["  Rows", grouped(rows)],
    ["  Added", grouped(added)],
    ...optional.flatMap(([title, count]) => (count > 0 ? [[`  ${title}`, grouped(count)]] : [])),
    ...(finishedAt === undefined ? [["  Time", `${seconds.toFixed(1)} s, ${rate} rows/s`]] : []),
  ];
  return `${titleOf(job, finishedAt)}\n\n${columns(table)}`;
}

function titleOf({ path, kind, values }: Import, finishedAt: number | undefined): string {
  const name = nameOf(path);
  const where = describeEnvironment(storageOf(values));
  if (values["dry-run"]) return `Checked ${kind} of ${name} for ${where}. Nothing was stored.`;
  if (finishedAt === undefined) return `Imported ${kind} of ${name} into ${where}.`;
  return `${name} was imported into ${where} before, at ${formatTime(finishedAt)}. Nothing was done; --again imports it again.`;
}
