import { databaseExists } from "../operator.ts";
import { resolve } from "node:path";
import { tableStoreOf } from "../../archive/contents.ts";
import { storageOf, type StorageConfig } from "../../config/config.ts";
import type { STORAGE_OPTIONS } from "../../config/options.ts";
import type { ValuesOf } from "../../config/parse-options.ts";
import { IMPORT_OPTIONS } from "../../config/transfer-options.ts";
import { joined, printable, UsageError } from "../../config/usage-error.ts";
import { grouped } from "../../api/formatting.ts";
import { type ImporterOptions, importRows } from "../../archive/import.ts";
import { type Input, openInput } from "../../archive/files.ts";
import { describeRejected } from "../../archive/rejects-file.ts";
import { ORDERS, ORDERS_WITH_IDS, PETS, PETS_WITH_IDS } from "../../archive/row-parser.ts";
import { InputError } from "../../archive/row-formats.ts";
import {
  ConcurrentImport,
  type ImportedOrder,
  type ImportedPet,
  type ImportProgress,
  ImportStore,
  NO_PROGRESS,
} from "../../archive/import-store.ts";
import { attributionOf, type Context, Failure, type Outcome } from "../command.ts";
import { isBug } from "../arguments.ts";
import {
  failureAfter,
  fileChanged,
  type ImportReport,
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

type ImportValues = ValuesOf<typeof IMPORT_OPTIONS & typeof STORAGE_OPTIONS> & { readonly json: boolean };

export async function importFile(path: string, values: ImportValues, context: Context): Promise<Outcome> {
  const wrong = checkOptions(values);
  if (wrong) return wrong;
  let input: Input | undefined;
  try {
    input = await openInput(path, () => context.readInput());
    return await new ImportRun({ path, input, values, storage: storageOf(values), context }).run();
  } catch (error) {
    if (error instanceof InputError) return new Failure(`cannot import ${nameOf(path)}: ${error.message}`);
    if (error instanceof ConcurrentImport) {
      return new Failure(`another process is importing ${nameOf(path)}; wait until it is done`);
    }
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
  const { fields } = orders ? ORDERS : PETS;
  const repeated = map.find(({ field }, index) => map.findIndex((each) => each.field === field) !== index);
  if (repeated)
    return new UsageError(`--map names the field "${repeated.field}" twice; leave one of them out`);
  const unknown = map.find(({ field }) => !fields.includes(field));
  if (unknown === undefined) return undefined;
  return new UsageError(`--map names the field "${unknown.field}"; the fields are ${joined(fields)}`);
}

interface ImportRunOptions {
  readonly path: string;
  readonly input: Input;
  readonly values: ImportValues;
  readonly storage: StorageConfig;
  readonly context: Context;
}

class ImportRun {
  readonly #options: ImportRunOptions;
  readonly #fingerprint: string;
  /** The absolute path, or -. */
  readonly #source: string;
  readonly #rejectsPath: string;
  readonly #kind: "pets" | "orders";
  #isStopped = false;
  #shownErrors = 0;

  constructor(options: ImportRunOptions) {
    const { path, input, values } = options;
    this.#options = options;
    this.#kind = values.orders ? "orders" : "pets";
    this.#fingerprint = `${this.#kind}:${input.fingerprint}`;
    this.#source = path === "-" ? path : resolve(path);
    this.#rejectsPath = values.rejects ?? (path === "-" ? "import.rejects" : `${path}.rejects`);
  }

  async run(): Promise<Outcome> {
    const { values, storage } = this.#options;
    if (values["dry-run"] && !databaseExists(storage)) return this.#import(undefined, NO_PROGRESS);
    const tables = await (await tableStoreOf(storage)).share();
    const store = new ImportStore(tables);
    try {
      if (values["dry-run"]) return await this.#import(store, NO_PROGRESS);
      const from = await this.#begin(store);
      return "outcome" in from ? from.outcome : await this.#import(store, from);
    } finally {
      await store.close();
    }
  }

  /** Where the import begins, or the outcome if it does not. */
  async #begin(store: ImportStore): Promise<ImportProgress | { readonly outcome: Outcome }> {
    const { path, values, context } = this.#options;
    const found = await store.findImport(this.#fingerprint);
    // An import that --again began and that was interrupted continues, too: its rows are not stored twice.
    const isUnfinished = found?.finishedAt === undefined && found?.options === this.#resumeOptions;
    const earlier = values.again && !isUnfinished ? undefined : found;
    if (earlier?.finishedAt !== undefined) {
      const { progress, finishedAt } = earlier;
      const rowsBefore = progress.rows;
      return {
        outcome: await this.#report({ end: "complete", progress, rowsBefore, seconds: 0, finishedAt }),
      };
    }
    if (earlier !== undefined) {
      if (earlier.options !== this.#resumeOptions) return { outcome: otherOptions(path, earlier) };
      const { progress } = earlier;
      const rejectsBytes = rejectsPosition(this.#rejectsPath, progress);
      if (rejectsBytes instanceof Failure) return { outcome: rejectsBytes };
      context.warn(`continuing the import of ${nameOf(path)} after ${grouped(progress.rows)} rows`);
      return { ...progress, rejectsBytes };
    }
    const changed = values.again ? undefined : await store.findUnfinishedImport(this.#source);
    if (changed && changed.progress.rows > 0 && path !== "-") return { outcome: fileChanged(path, changed) };
    const rejects = rejectsPosition(this.#rejectsPath);
    if (rejects instanceof Failure) return { outcome: rejects };
    await store.beginImport({
      fingerprint: this.#fingerprint,
      source: this.#source,
      options: this.#resumeOptions,
      startedAt: context.clock.now(),
    });
    return NO_PROGRESS;
  }

  /** What cannot change halfway. */
  get #resumeOptions(): string {
    const { "keep-ids": keepIds, map, delimiter } = this.#options.values;
    const flags = [
      ...(keepIds ? ["--keep-ids"] : []),
      ...map.map(({ field, column }) => `--map ${field}=${column}`).toSorted(),
      ...(delimiter === undefined ? [] : [`--delimiter ${IMPORT_OPTIONS.delimiter.type.format(delimiter)}`]),
    ];
    return flags.join(" ");
  }

  async #import(store: ImportStore | undefined, from: ImportProgress): Promise<Outcome> {
    const { values, input, context } = this.#options;
    const startedAt = performance.now();
    let stored = from.rows;
    const progress = new Progress({ stream: context.errorStream, isJson: values.json, rows: from.rows });
    void context.stopSignal(0).then(
      () => (this.#isStopped = true),
      () => {},
    );
    const shared: Omit<ImporterOptions<unknown>, "type" | "store"> = {
      input,
      rowsPerBatch: store?.rowsPerBatch ?? ROWS_PER_TRIAL,
      map: values.map,
      delimiter: values.delimiter,
      onConflict: values["on-conflict"],
      maxErrors: values["max-errors"],
      commit: values["dry-run"]
        ? undefined
        : { fingerprint: this.#fingerprint, rejectsPath: this.#rejectsPath },
      from,
      onRejected: (rejected) => {
        if (this.#shownErrors++ >= SHOWN_ERRORS) return;
        progress.end();
        // It can contain the name of a column.
        context.warn(printable(describeRejected(rejected)));
      },
      onProgress: ({ rows }, bytes) => {
        stored = rows;
        progress.update({ done: rows, share: bytes / input.size });
      },
      isStopped: () => this.#isStopped,
    };
    const keepIds = values["keep-ids"];
    const run = values.orders
      ? importRows<ImportedOrder>({
          ...shared,
          type: keepIds ? ORDERS_WITH_IDS : ORDERS,
          store: store && ((batch) => store.importOrders(batch)),
        })
      : importRows<ImportedPet>({
          ...shared,
          type: keepIds ? PETS_WITH_IDS : PETS,
          store: store && ((batch) => store.importPets(batch)),
        });
    const imported = await run
      .catch((error: unknown) => this.#failure(error, stored))
      .finally(() => progress.end());
    if (imported instanceof Failure) return imported;
    const { end, progress: reached } = imported;
    if (end === "complete" && !values["dry-run"]) await this.#finish(store, reached);
    const seconds = (performance.now() - startedAt) / 1_000;
    return this.#report({ end, progress: reached, rowsBefore: from.rows, seconds });
  }

  async #finish(store: ImportStore | undefined, progress: ImportProgress): Promise<void> {
    const { added, replaced, skipped, rejected } = progress;
    const after = { kind: this.#kind, source: this.#source, added, replaced, skipped, rejected };
    await store?.finishImport(this.#fingerprint, {
      ...attributionOf(this.#options.context),
      action: "data.imported",
      after,
    });
  }

  /** What became of an import after some of its rows were stored. */
  #failure(error: unknown, stored: number): Failure {
    const { path, values } = this.#options;
    if (values["dry-run"] || stored === 0 || error instanceof ConcurrentImport || isBug(error)) throw error;
    return failureAfter(error, path, stored);
  }

  /** Prints the summary, unless the import was interrupted. */
  async #report(
    reached: Pick<ImportReport, "end" | "progress" | "rowsBefore" | "seconds" | "finishedAt">,
  ): Promise<Outcome> {
    const { path, values, storage, context } = this.#options;
    const report = {
      path,
      kind: this.#kind,
      storage,
      isDryRun: values["dry-run"],
      maxErrors: values["max-errors"],
      rejectsPath: this.#rejectsPath,
      ...reached,
    };
    if (reached.end !== "stopped")
      await context.print(values.json ? summaryJson(report) : summaryText(report));
    return outcomeOf(report);
  }
}
