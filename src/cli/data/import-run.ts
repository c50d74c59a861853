import { statSync } from "node:fs";
import { resolve } from "node:path";
import { formatTime, grouped } from "../../api/formatting.ts";
import { tableStoreOf } from "../../archive/contents.ts";
import { type InputFile, openInput } from "../../archive/files.ts";
import {
  ConcurrentImport,
  type ImportedOrder,
  type ImportedPet,
  type ImportProgress,
  type ImportRecord,
  ImportStore,
  NO_PROGRESS,
} from "../../archive/import-store.ts";
import { type ImportEnd, type ImporterOptions, importRows } from "../../archive/import.ts";
import { describeRejected } from "../../archive/rejects-file.ts";
import { InputError } from "../../archive/row-formats.ts";
import {
  type ImportedRow,
  ORDER_ROWS,
  ORDER_ROWS_WITH_IDS,
  PET_ROWS,
  PET_ROWS_WITH_IDS,
} from "../../archive/row-parser.ts";
import { describeEnvironment, storageOf } from "../../config/config.ts";
import type { STORAGE_OPTIONS } from "../../config/options.ts";
import type { ValuesOf } from "../../config/parse-options.ts";
import { IMPORT_OPTIONS } from "../../config/transfer-options.ts";
import { joined, printable, quotedPath, UsageError } from "../../config/usage-error.ts";
import { formatValue } from "../../config/value-types.ts";
import { errorMessage, isBug } from "../arguments.ts";
import { attributionOf, type Context, Failure, type Outcome, stopRequest } from "../command.ts";
import { databaseExists } from "../operator.ts";
import { columns, json } from "../output.ts";
import { Progress } from "./progress.ts";

type ImportValues = ValuesOf<typeof IMPORT_OPTIONS & typeof STORAGE_OPTIONS> & {
  readonly json: boolean;
};

/** One import of a file. */
interface Import {
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

/** Rejected rows that are shown; the file of rejected rows has all of them. */
const SHOWN_ERRORS = 10;

/** Without a database. */
const ROWS_PER_TRIAL = 1_000;

export async function importFile(path: string, values: ImportValues, context: Context): Promise<Outcome> {
  const wrong = checkOptions(values);
  if (wrong) return wrong;
  const kind = values.orders ? "orders" : "pets";
  let input: InputFile | undefined;
  try {
    input = await openInput(path, () => context.readInput());
    return await run({
      path,
      input,
      values,
      context,
      kind,
      fingerprint: `${kind}:${input.fingerprint}`,
      source: path === "-" ? path : resolve(path),
      rejectsPath: values.rejects ?? (path === "-" ? "import.rejects" : `${path}.rejects`),
      resumeOptions: resumeOptions(values),
    });
  } catch (error) {
    if (error instanceof InputError) return new Failure(`cannot import ${nameOf(path)}: ${error.message}`);
    if (error instanceof ConcurrentImport)
      return new Failure(`another process is importing ${nameOf(path)}; wait until it is done`);
    throw error;
  } finally {
    input?.close();
  }
}

function checkOptions({ orders, map, "keep-ids": keepIds, "on-conflict": onConflict }: ImportValues) {
  if (onConflict !== "reject" && !keepIds) {
    return new UsageError(
      `--on-conflict ${onConflict} needs --keep-ids: identifiers that are assigned never exist`,
    );
  }
  const fields = Object.keys((orders ? ORDER_ROWS : PET_ROWS).fields);
  const repeated = map.find(({ field }, index) => map.findIndex((each) => each.field === field) !== index);
  if (repeated)
    return new UsageError(`--map names the field "${repeated.field}" twice; leave one of them out`);
  const unknown = map.find(({ field }) => !fields.includes(field));
  if (unknown === undefined) return undefined;
  return new UsageError(`--map names the field "${unknown.field}"; the fields are ${joined(fields)}`);
}

function resumeOptions({ "keep-ids": keepIds, map, delimiter }: ImportValues): string {
  const flags = [
    ...(keepIds ? ["--keep-ids"] : []),
    ...map.map(({ field, column }) => `--map ${field}=${column}`).toSorted(),
    ...(delimiter === undefined
      ? []
      : [`--delimiter ${formatValue(IMPORT_OPTIONS.delimiter.type, delimiter)}`]),
  ];
  return flags.join(" ");
}

async function run(job: Import): Promise<Outcome> {
  const storage = storageOf(job.values);
  const isDryRun = job.values["dry-run"];
  if (isDryRun && !databaseExists(storage)) return importFrom(job, undefined, NO_PROGRESS);
  const store = new ImportStore(await (await tableStoreOf(storage)).share());
  try {
    const from = isDryRun ? NO_PROGRESS : await begin(job, store);
    return "outcome" in from ? from.outcome : await importFrom(job, store, from);
  } finally {
    await store.close();
  }
}

/** Where the import begins, or the outcome if it does not. */
async function begin(
  job: Import,
  store: ImportStore,
): Promise<ImportProgress | { readonly outcome: Outcome }> {
  const { path, values, context, fingerprint, source, rejectsPath, resumeOptions: options } = job;
  const found = await store.findImport(fingerprint);
  // An import that --again began and that was interrupted continues, too: its rows are not stored twice.
  const isUnfinished = found?.finishedAt === undefined && found?.options === options;
  const earlier = values.again && !isUnfinished ? undefined : found;
  if (earlier?.finishedAt !== undefined) {
    const { progress, finishedAt } = earlier;
    const ended = { end: "complete", progress, rowsBefore: progress.rows, seconds: 0, finishedAt } as const;
    return { outcome: await report(job, ended) };
  }
  if (earlier && earlier.options !== options) return { outcome: otherOptions(path, earlier) };
  const changed = earlier || values.again ? undefined : await store.findUnfinishedImport(source);
  if (changed && changed.progress.rows > 0 && path !== "-") return { outcome: fileChanged(path, changed) };
  const rejectsBytes = rejectsPosition(rejectsPath, earlier?.progress);
  if (rejectsBytes instanceof Failure) return { outcome: rejectsBytes };
  if (earlier) {
    context.warn(`continuing the import of ${nameOf(path)} after ${grouped(earlier.progress.rows)} rows`);
    return { ...earlier.progress, rejectsBytes };
  }
  await store.beginImport({ fingerprint, source, options, startedAt: context.clock.now() });
  return NO_PROGRESS;
}

async function importFrom(
  job: Import,
  store: ImportStore | undefined,
  from: ImportProgress,
): Promise<Outcome> {
  const { path, values, input, context, kind, fingerprint, source, rejectsPath } = job;
  const { "dry-run": isDryRun, "keep-ids": keepIds } = values;
  const startedAt = performance.now();
  let stored = from.rows;
  let shownErrors = 0;
  const isStopped = stopRequest(context);
  const progress = new Progress({ stream: context.errorStream, isJson: values.json, rows: from.rows });
  const shared: Omit<ImporterOptions<ImportedRow>, "type" | "store"> = {
    input,
    rowsPerBatch: store?.rowsPerBatch ?? ROWS_PER_TRIAL,
    map: values.map,
    delimiter: values.delimiter,
    onConflict: values["on-conflict"],
    maxErrors: values["max-errors"],
    commit: isDryRun ? undefined : { fingerprint, rejectsPath },
    from,
    onRejected: (rejected) => {
      if (shownErrors++ >= SHOWN_ERRORS) return;
      progress.end();
      // It can contain the name of a column.
      context.warn(printable(describeRejected(rejected)));
    },
    onProgress: ({ rows }, bytes) => {
      stored = rows;
      progress.update({ done: rows, share: bytes / input.size });
    },
    isStopped,
  };
  const importing = values.orders
    ? importRows<ImportedOrder>({
        ...shared,
        type: keepIds ? ORDER_ROWS_WITH_IDS : ORDER_ROWS,
        store: store && ((batch) => store.importOrders(batch)),
      })
    : importRows<ImportedPet>({
        ...shared,
        type: keepIds ? PET_ROWS_WITH_IDS : PET_ROWS,
        store: store && ((batch) => store.importPets(batch)),
      });
  const imported = await importing
    .catch((error: unknown) => {
      if (isDryRun || stored === 0 || error instanceof ConcurrentImport || isBug(error)) throw error;
      return failureAfter(error, path, stored);
    })
    .finally(() => progress.end());
  if (imported instanceof Failure) return imported;
  if (imported.end === "complete" && !isDryRun) {
    const { rows: _rows, rejectsBytes: _bytes, ...counts } = imported.progress;
    const after = { kind, source, ...counts };
    await store?.finishImport(fingerprint, { ...attributionOf(context), action: "data.imported", after });
  }
  const seconds = (performance.now() - startedAt) / 1_000;
  return report(job, { ...imported, rowsBefore: from.rows, seconds });
}

/** Prints the summary, unless the import was interrupted. */
async function report(job: Import, ended: ImportEnded): Promise<Outcome> {
  const { values, context } = job;
  if (ended.end !== "stopped")
    await context.print(values.json ? summaryJson(job, ended) : summaryText(job, ended));
  return outcomeOf(job, ended);
}

function nameOf(path: string): string {
  return path === "-" ? "standard input" : printable(path);
}

/** Refuses an edited file: its rows would be stored twice. */
function fileChanged(path: string, { progress }: ImportRecord): Failure {
  return new Failure(
    `${nameOf(path)} has changed since ${grouped(progress.rows)} rows of it were imported; import the earlier file to the end, or add --again to import this one from its beginning`,
  );
}

/** Where the next rejected row is written; `progress` is that of an import that continues. */
function rejectsPosition(path: string, progress?: ImportProgress): number | Failure {
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
function failureAfter(error: unknown, path: string, stored: number): Failure {
  const [name, rows] = [nameOf(path), grouped(stored)];
  return new Failure(
    error instanceof InputError
      ? `cannot import all of ${name}: ${error.message}; its first ${rows} rows are imported, so import the others from another file`
      : `stopped after ${rows} rows of ${name}: ${errorMessage(error)}; run the same command again to continue`,
  );
}

function otherOptions(path: string, { options, progress }: ImportRecord): Failure {
  const earlier = options === "" ? "no such options" : options;
  return new Failure(
    `${grouped(progress.rows)} rows of ${nameOf(path)} were imported with other options (${earlier}); continue with those, or add --again to import it from its beginning`,
  );
}

/** How an import ended. */
interface ImportEnded {
  readonly end: ImportEnd;
  readonly progress: ImportProgress;
  /** Rows that were done before. */
  readonly rowsBefore: number;
  readonly seconds: number;
  /** Set if the file was imported before. */
  readonly finishedAt?: number;
}

/** Undefined if every row was imported or skipped. */
function outcomeOf({ path, values, rejectsPath }: Import, { end, progress }: ImportEnded): Outcome {
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

function summaryJson({ kind, values, rejectsPath }: Import, ended: ImportEnded): string {
  const { rejectsBytes: _, ...counts } = ended.progress;
  const isDryRun = values["dry-run"];
  return json({
    kind,
    isComplete: ended.end === "complete",
    isDryRun,
    importedBefore: ended.finishedAt !== undefined,
    ...counts,
    rejects: counts.rejected > 0 && !isDryRun ? rejectsPath : null,
    seconds: ended.seconds,
  });
}

function summaryText(job: Import, { progress, rowsBefore, seconds, finishedAt }: ImportEnded): string {
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
