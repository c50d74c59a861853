import { resolve } from "node:path";
import { grouped } from "../../api/formatting.ts";
import { tableStoreOf } from "../../archive/contents.ts";
import { type InputFile, openInput } from "../../archive/files.ts";
import {
  ConcurrentImport,
  type ImportedOrder,
  type ImportedPet,
  type ImportProgress,
  ImportStore,
  NO_PROGRESS,
} from "../../archive/import-store.ts";
import { type ImporterOptions, importRows } from "../../archive/import.ts";
import { describeRejected } from "../../archive/rejects-file.ts";
import { InputError } from "../../archive/row-formats.ts";
import {
  type ImportedRow,
  ORDER_ROWS,
  ORDER_ROWS_WITH_IDS,
  PET_ROWS,
  PET_ROWS_WITH_IDS,
} from "../../archive/row-parser.ts";
import { storageOf } from "../../config/config.ts";
import { IMPORT_OPTIONS } from "../../config/transfer-options.ts";
import { joined, printable, UsageError } from "../../config/usage-error.ts";
import { isBug } from "../arguments.ts";
import { attributionOf, type Context, Failure, type Outcome } from "../command.ts";
import { databaseExists } from "../operator.ts";
import {
  failureAfter,
  fileChanged,
  type Import,
  type ImportEnded,
  type ImportValues,
  nameOf,
  otherOptions,
  outcomeOf,
  rejectsPosition,
  summaryJson,
  summaryText,
} from "./import-messages.ts";
import { Progress } from "./progress.ts";

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
    ...(delimiter === undefined ? [] : [`--delimiter ${IMPORT_OPTIONS.delimiter.type.format(delimiter)}`]),
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
  const { path, values, input, context, fingerprint, rejectsPath } = job;
  const { "dry-run": isDryRun, "keep-ids": keepIds } = values;
  const startedAt = performance.now();
  let stored = from.rows;
  let shownErrors = 0;
  let isStopped = false;
  const progress = new Progress({ stream: context.errorStream, isJson: values.json, rows: from.rows });
  void context.stopSignal(0).then(
    () => (isStopped = true),
    () => {},
  );
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
    isStopped: () => isStopped,
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
  if (imported.end === "complete" && !isDryRun) await finish(job, store, imported.progress);
  const seconds = (performance.now() - startedAt) / 1_000;
  return report(job, { ...imported, rowsBefore: from.rows, seconds });
}

async function finish(
  { fingerprint, kind, source, context }: Import,
  store: ImportStore | undefined,
  { added, replaced, skipped, rejected }: ImportProgress,
): Promise<void> {
  const after = { kind, source, added, replaced, skipped, rejected };
  await store?.finishImport(fingerprint, { ...attributionOf(context), action: "data.imported", after });
}

/** Prints the summary, unless the import was interrupted. */
async function report(job: Import, ended: ImportEnded): Promise<Outcome> {
  const { values, context } = job;
  if (ended.end !== "stopped")
    await context.print(values.json ? summaryJson(job, ended) : summaryText(job, ended));
  return outcomeOf(job, ended);
}
