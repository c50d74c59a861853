import { statSync } from "node:fs";
import { resolve } from "node:path";
import { countOf, formatTime, grouped, printable } from "../../../text/formatting.ts";
import { tableStoreOf } from "../../../archive/open-tables.ts";
import { type InputFile, openInput } from "../../../archive/files.ts";
import {
  ConcurrentImport,
  type ImportProgress,
  ImportStore,
  NO_PROGRESS,
} from "../../../archive/import-store.ts";
import { importPets, type ImportResult } from "../../../archive/import.ts";
import { describeRejectedRow } from "../../../archive/rejects-file.ts";
import { InputError } from "../../../archive/row-reader.ts";
import { dataLocationOf } from "../../../config/storage.ts";
import { JSON_OPTION, DATABASE_OPTIONS } from "../../../config/options.ts";
import type { Options, ValuesOf } from "../../../config/parse-options.ts";
import { UsageError } from "../../../config/usage-error.ts";
import { quotedPath } from "../../../config/quoted.ts";
import { choice, file, integerWithin, switchOption } from "../../../config/value-types.ts";
import { errorMessage, isBug } from "../../error-message.ts";
import { attributionOf, type Context, defineCommand, Failure, stopRequest } from "../../command.ts";
import { columns, json } from "../../output.ts";
import { Progress } from "./progress.ts";

const OPTIONS = {
  "keep-ids": switchOption("Keep the identifiers of the file instead of assigning new ones"),
  "on-conflict": {
    type: choice("RULE", ["reject", "skip", "replace"]),
    default: "reject",
    help: "What becomes of a row whose identifier exists already; only with --keep-ids",
  },
  "dry-run": switchOption("Read and check everything, and store nothing"),
  "max-errors": {
    type: integerWithin({ min: 0, max: 1_000_000_000 }),
    default: 100,
    help: "Rows that may be rejected; the import stops at the next one",
  },
  rejects: {
    type: file,
    defaultText: "FILE.rejects",
    help: "File for the rejected rows, each with its error; it can be corrected and imported",
  },
  again: switchOption("Import a file from its beginning that was imported before"),
  ...DATABASE_OPTIONS,
  ...JSON_OPTION,
} as const satisfies Options;
type ImportValues = ValuesOf<typeof OPTIONS>;

export const importCommand = defineCommand({
  name: "import",
  summary: "Import pets from a file",
  description:
    "Adds the pets of a file: NDJSON or CSV, gzip or not; the content shows which. - is standard input. Every row is checked as the API checks it; rows that are not valid go to a file of rejected rows. The import works while servers run, and they show the pets within a second. An import that is interrupted continues where it was when the same command runs again, and a file that was imported completely is not imported twice. The exit status is 0 if every row was imported or skipped.",
  data: "creates",
  positionals: { FILE: { ...file, expected: "the path of a file, or - for standard input" } },
  options: OPTIONS,
  examples: [
    "petstore import pets.csv --dry-run",
    "petstore import pets.ndjson.gz --keep-ids --on-conflict skip",
    "petstore import - --env staging < pets.csv",
  ],
  async run({ positionals: { FILE: path }, values }, context) {
    checkOptions(values);
    const name = path === "-" ? "standard input" : printable(path);
    try {
      using input = await openInput(path, () => context.readInput());
      await importFile({
        name,
        input,
        values,
        context,
        fingerprint: `pets:${input.fingerprint}`,
        source: path === "-" ? path : resolve(path),
        rejectsPath: values.rejects ?? (path === "-" ? "import.rejects" : `${path}.rejects`),
      });
      return undefined;
    } catch (error) {
      if (error instanceof InputError) throw new Failure(`cannot import ${name}: ${error.message}`);
      if (error instanceof ConcurrentImport)
        throw new Failure(`another process is importing ${name}; wait until it is done`);
      throw error;
    }
  },
});

/** One import of a file. */
interface Import {
  /** The name of the file in messages. */
  readonly name: string;
  readonly input: InputFile;
  readonly values: ImportValues;
  readonly context: Context;
  readonly fingerprint: string;
  /** The absolute path, or - for standard input. */
  readonly source: string;
  readonly rejectsPath: string;
}

/** Rejected rows that are shown; the file of rejected rows has all of them. */
const SHOWN_ERRORS = 10;

function checkOptions({ "keep-ids": keepIds, "on-conflict": onConflict }: ImportValues): void {
  if (onConflict !== "reject" && !keepIds) {
    throw new UsageError(
      `--on-conflict ${onConflict} needs --keep-ids: identifiers that are assigned never exist`,
    );
  }
}

/** The options that cannot change halfway. */
function resumeOptions({ "keep-ids": keepIds }: ImportValues): string {
  return keepIds ? "--keep-ids" : "";
}

async function importFile(job: Import): Promise<void> {
  const location = dataLocationOf(job.values);
  const isDryRun = job.values["dry-run"];
  if (isDryRun && !location.mayHaveDatabase()) return importFrom(job, undefined, NO_PROGRESS);
  const tableStore = await tableStoreOf(location);
  if (isDryRun && !(await tableStore.exists())) return importFrom(job, undefined, NO_PROGRESS);
  await using tables = await tableStore.share();
  const store = new ImportStore(tables);
  const from = isDryRun ? NO_PROGRESS : await begin(job, store);
  if (from) await importFrom(job, store, from);
}

/** Where the import begins; undefined if the file was imported before, which it reports. */
async function begin(job: Import, store: ImportStore): Promise<ImportProgress | undefined> {
  const { name, values, context, fingerprint, source } = job;
  const options = resumeOptions(values);
  const found = await store.findImport(fingerprint);
  // An import that --again began and that was interrupted continues, too: its rows are not stored twice.
  const isUnfinished = found?.finishedAt === undefined && found?.options === options;
  const earlier = values.again && !isUnfinished ? undefined : found;
  if (earlier?.finishedAt !== undefined) {
    const { progress, finishedAt } = earlier;
    const ended = { end: "complete", progress, rowsBefore: progress.rows, seconds: 0, finishedAt } as const;
    await report(job, ended);
    return undefined;
  }
  if (earlier && earlier.options !== options) {
    const others = earlier.options || "no such options";
    throw new Failure(
      `an import of ${name} with other options (${others}) stopped after ${countOf(earlier.progress.rows, "row")}; continue with those, or add --again to import it from its beginning`,
    );
  }
  const changed = earlier || values.again ? undefined : await store.findUnfinishedImport(source);
  // The rows of an edited file would be stored twice.
  if (changed && changed.progress.rows > 0 && source !== "-") {
    throw new Failure(
      `${name} has changed since an import of it stopped after ${countOf(changed.progress.rows, "row")}; import the earlier file to the end, or add --again to import this one from its beginning`,
    );
  }
  const rejectsBytes = rejectsPosition(job.rejectsPath, earlier?.progress);
  if (earlier) {
    context.warn(`continuing the import of ${name} after ${countOf(earlier.progress.rows, "row")}`);
    return { ...earlier.progress, rejectsBytes };
  }
  await store.beginImport({ fingerprint, source, options, startedAt: context.clock.now() });
  return NO_PROGRESS;
}

async function importFrom(job: Import, store: ImportStore | undefined, from: ImportProgress): Promise<void> {
  const { name, values, input, context, fingerprint, source, rejectsPath } = job;
  const { "dry-run": isDryRun, "keep-ids": keepIds } = values;
  const startedAt = performance.now();
  let stored = from.rows;
  let shownErrors = 0;
  const progress = new Progress({ stream: context.errorStream, isJson: values.json, rows: from.rows });
  const imported = await importPets({
    input,
    keepsIds: keepIds,
    onConflict: values["on-conflict"],
    maxErrors: values["max-errors"],
    store,
    commit: isDryRun ? undefined : { fingerprint, rejectsPath },
    from,
    onRejected(rejected) {
      if (shownErrors++ >= SHOWN_ERRORS) return;
      progress.end();
      // It can contain the name of a column.
      context.warn(describeRejectedRow(rejected));
    },
    onProgress({ rows }, bytes) {
      stored = rows;
      progress.update({ done: rows, share: bytes / input.size });
    },
    isStopped: stopRequest(context),
  })
    .catch((error: unknown) => {
      if (isDryRun || stored === 0 || error instanceof ConcurrentImport || isBug(error)) throw error;
      const rows = countOf(stored, "row");
      throw new Failure(
        error instanceof InputError
          ? `cannot import all of ${name}: ${error.message}; the import stopped after ${rows}, so import the others from another file`
          : `stopped after ${rows} of ${name}: ${errorMessage(error)}; run the same command again to continue`,
      );
    })
    .finally(() => progress.end());
  if (imported.end === "complete" && !isDryRun) {
    const { rows: _rows, rejectsBytes: _bytes, ...counts } = imported.progress;
    const after = { kind: "pets", source, ...counts };
    await store?.finishImport(fingerprint, { ...attributionOf(context), action: "data.imported", after });
  }
  const seconds = (performance.now() - startedAt) / 1_000;
  await report(job, { ...imported, rowsBefore: from.rows, seconds });
}

/** Where the next rejected row is written; `progress` is that of an import that continues. */
function rejectsPosition(path: string, progress?: ImportProgress): number {
  const stats = statSync(path, { throwIfNoEntry: false });
  if (stats === undefined) return 0;
  const rejects = quotedPath(path);
  if (!stats.isFile())
    throw new Failure(`${rejects} is not a regular file; choose another one with --rejects`);
  if (progress === undefined)
    throw new Failure(
      `${rejects} has the rejected rows of another import; move it away or choose another file with --rejects`,
    );
  if (stats.size >= progress.rejectsBytes) return progress.rejectsBytes;
  throw new Failure(
    `${rejects} has changed since the import stopped; move it away or choose another file with --rejects for the next rejected rows`,
  );
}

interface ImportEnded extends ImportResult {
  /** Rows that were done before. */
  readonly rowsBefore: number;
  readonly seconds: number;
  /** Set if the file was imported before. */
  readonly finishedAt?: number;
}

/** Prints the summary, unless the import was interrupted. Throws unless every row was imported or skipped. */
async function report(job: Import, ended: ImportEnded): Promise<void> {
  const { name, values, context, rejectsPath } = job;
  const { end, progress } = ended;
  const { rows, rejected } = progress;
  const { "dry-run": isDryRun, "max-errors": maxErrors } = values;
  if (end === "stopped") {
    const next = isDryRun ? "nothing was stored" : "run the same command again to continue";
    throw new Failure(`interrupted after ${countOf(rows, "row")} of ${name}; ${next}`);
  }
  await context.print(values.json ? summaryJson(job, ended) : summaryText(job, ended));
  if (rejected === 0) return;
  const were = rejected === 1 ? "1 row was" : `${grouped(rejected)} rows were`;
  const them = rejected === 1 ? "it with its error" : "them with their errors";
  const where = isDryRun ? "" : `; ${quotedPath(rejectsPath)} has ${them}`;
  if (end === "complete") throw new Failure(`${were} rejected${where}`);
  const remedy = isDryRun ? "" : "; a higher --max-errors continues the import";
  throw new Failure(
    `stopped after ${countOf(rows, "row")} of ${name}: ${were} rejected, and --max-errors is ${maxErrors}${where}${remedy}`,
  );
}

function summaryJson({ values, rejectsPath }: Import, ended: ImportEnded): string {
  const { rejectsBytes: _, ...counts } = ended.progress;
  const isDryRun = values["dry-run"];
  return json({
    kind: "pets",
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

function titleOf({ name, values }: Import, finishedAt: number | undefined): string {
  const where = dataLocationOf(values).name;
  if (values["dry-run"]) return `Checked pets of ${name} for ${where}. Nothing was stored.`;
  if (finishedAt === undefined) return `Imported pets of ${name} into ${where}.`;
  return `${name} was imported into ${where} before, at ${formatTime(finishedAt)}. Nothing was done; --again imports it again.`;
}
