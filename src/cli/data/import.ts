import { JSON_OPTION, STORAGE_OPTIONS } from "../../config/options.ts";
import { IMPORT_OPTIONS } from "../../config/transfer-options.ts";
import { file } from "../../config/value-types.ts";
import { defineCommand } from "../command.ts";

const source = { ...file, expected: "the path of a file, or - for standard input" };

export const importCommand = defineCommand({
  name: "import",
  summary: "Import pets or orders from a file",
  description:
    "Adds the pets of a file: NDJSON, a JSON array or CSV, gzip or not, which the content tells. - is standard input. Every row is checked as the API checks it; rows that are not valid go to a file of rejected rows. The import works while servers run, and they show the pets within a second. An import that is interrupted continues where it was when the same command runs again, and a file that was imported completely is not imported twice. The exit status is 0 if every row was imported or skipped.",
  positionals: { FILE: source },
  options: { ...IMPORT_OPTIONS, ...STORAGE_OPTIONS, ...JSON_OPTION },
  examples: [
    "petstore import pets.csv --dry-run",
    "petstore import pets.csv --map name=Title,categoryId=Kind",
    "petstore import pets.ndjson.gz --keep-ids --on-conflict skip",
    "petstore import orders.ndjson --orders --keep-ids",
    "petstore import - --env staging < pets.csv",
  ],
  async run({ positionals: { FILE: path }, values }, context) {
    const { importFile } = await import("./import-run.ts");
    return importFile(path, values, context);
  },
});
