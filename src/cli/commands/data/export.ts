import { basename } from "node:path";
import { dataLocationOf } from "../../../config/storage.ts";
import { JSON_OPTION, DATABASE_OPTIONS } from "../../../config/options.ts";
import { UsageError } from "../../../config/usage-error.ts";
import { quotedPath } from "../../../config/quoted.ts";
import { choice, file, optional, switchOption } from "../../../config/value-types.ts";
import { grouped } from "../../../text/formatting.ts";
import { EXPORT_KINDS, exportRows } from "../../../archive/export.ts";
import { fileOutput, type Output } from "../../../archive/files.ts";
import { EXPORT_FORMATS } from "../../../archive/row-encoders.ts";
import { json } from "../../output.ts";
import { type Context, defineCommand, Failure, stopRequest } from "../../command.ts";
import { Progress } from "./progress.ts";

const destination = { ...file, expected: "the path of a file, or - for standard output" };

export const exportCommand = defineCommand({
  name: "export",
  summary: "Export pets, orders, keys or the audit trail",
  description:
    "Writes all pets, orders, API keys or audit entries of an environment as they are at one instant, while servers run. Without FILE, or with -, it writes to standard output. A file appears when it is complete, readable by its owner only, and replaces an earlier one. petstore import reads pets back. Keys come without their secrets.",
  data: "reads",
  positionals: { KIND: choice("KIND", EXPORT_KINDS), FILE: optional(destination) },
  options: {
    format: {
      type: choice("FORMAT", EXPORT_FORMATS),
      defaultText: "csv for a FILE with .csv in its name, otherwise ndjson",
      help: "One JSON object on each line, or CSV with a header",
    },
    gzip: { ...switchOption("Compress the output"), defaultText: "for a FILE that ends with .gz" },
    "for-spreadsheets": switchOption(
      "Put an apostrophe before a text of CSV that a spreadsheet would calculate, such as =1+1",
    ),
    ...DATABASE_OPTIONS,
    ...JSON_OPTION,
  },
  examples: [
    "petstore export pets pets.ndjson.gz",
    "petstore export orders orders.csv --env staging",
    "petstore export keys --format csv --for-spreadsheets > keys.csv",
    "petstore export audit audit.ndjson.gz",
  ],
  async run({ positionals: { KIND: kind, FILE: path }, values }, context) {
    const [one, noun] = kind === "audit" ? ["audit entry", "audit entries"] : [kind.slice(0, -1), kind];
    const isFile = path !== undefined && path !== "-";
    const format = values.format ?? (/\.csv\b/.test(basename(path ?? "")) ? "csv" : "ndjson");
    const forSpreadsheets = values["for-spreadsheets"];
    if (forSpreadsheets && format !== "csv") throw new UsageError("--for-spreadsheets is only for CSV");
    if (values.json && !isFile)
      throw new UsageError("--json needs FILE: standard output has the export itself");
    if (values.gzip && !isFile && context.screen.isTerminal)
      throw new UsageError("--gzip needs FILE or a pipe: a terminal shows no compressed data");
    const location = dataLocationOf(values);
    const progress = new Progress({ stream: context.errorStream, isJson: values.json });
    const isStopped = stopRequest(context);
    const startedAt = performance.now();
    const { tableReaderOf } = await import("../../../archive/open-tables.ts");
    await using reader = await tableReaderOf(location);
    const output = isFile ? fileOutput(path) : standardOutput(context);
    try {
      const rows = await exportRows({
        reader,
        kind,
        format,
        forSpreadsheets,
        isGzip: values.gzip || path?.endsWith(".gz") === true,
        output,
        onProgress: (done) => progress.update({ done }),
        isStopped,
      });
      progress.end();
      if (rows === undefined) {
        const left = isFile ? `${quotedPath(path)} was not written` : `standard output lacks ${noun}`;
        throw new Failure(`interrupted; ${left}`);
      }
      const seconds = (performance.now() - startedAt) / 1_000;
      if (values.json) return json({ kind, file: path, rows, seconds });
      return isFile
        ? `Exported ${grouped(rows)} ${rows === 1 ? one : noun} to ${quotedPath(path)} in ${seconds.toFixed(1)} s.\n`
        : undefined;
    } finally {
      output.close();
    }
  },
});

function standardOutput({ print }: Pick<Context, "print">): Output {
  return { write: print, finish: () => {}, close: () => {} };
}
