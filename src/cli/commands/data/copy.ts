import packageJson from "../../../../package.json" with { type: "json" };
import { existsSync } from "node:fs";
import { OutcomeUnknown } from "../../../api/errors.ts";
import { resolve } from "node:path";
import { countOf, grouped } from "../../../text/formatting.ts";
import type { Direction } from "../../../archive/copy.ts";
import { postgresUrl } from "../../../config/address-types.ts";
import { describeStorage, type StorageConfig, storageOf } from "../../../config/storage.ts";
import { JSON_OPTION, DATABASE_OPTIONS } from "../../../config/options.ts";
import { UsageError } from "../../../config/usage-error.ts";
import { file } from "../../../config/value-types.ts";
import { attributionOf, type Context, defineCommand, Failure, type FinalText } from "../../command.ts";
import { errorMessage, isBug } from "../../error-message.ts";
import { columns, json } from "../../output.ts";
import { Progress } from "./progress.ts";

const { "database-url": _url, "database-url-file": _file, ...OTHER_DATABASE_OPTIONS } = DATABASE_OPTIONS;

export const copy = defineCommand({
  name: "copy",
  summary: "Copy everything from SQLite to PostgreSQL, or back",
  description:
    "Copies pets, orders, keys, operators, plans, ban rules, idempotency records, usage history and audit trail between SQLite in --data and a PostgreSQL database, with the used quotas and bans of the keys. All servers of the environment must be stopped. It compares the number and the checksum of the rows on both sides; the copy becomes visible in one step after that. If it is interrupted, run it again. The source stays as it is, and a target with other data is a failure.",
  data: "replaces",
  options: {
    to: {
      type: postgresUrl,
      fileOption: "to-file",
      help: "PostgreSQL database to copy to, from SQLite in --data",
    },
    "to-file": {
      type: file,
      help: "File that contains --to, whose password other users could read in a list of processes",
    },
    from: {
      type: postgresUrl,
      fileOption: "from-file",
      help: "PostgreSQL database to copy from, to SQLite in --data",
    },
    "from-file": { type: file, help: "File that contains --from" },
    ...OTHER_DATABASE_OPTIONS,
    ...JSON_OPTION,
  },
  examples: [
    "petstore copy --to postgres://petstore@db.example.com/petstore",
    "petstore copy --from postgres://petstore@db.example.com/petstore --data ./data",
  ],
  async run({ values }, context) {
    const { to, from } = values;
    if ((to === undefined) === (from === undefined)) {
      throw new UsageError(
        "copy needs --to or --from: one of them, the PostgreSQL database to copy to or from",
      );
    }
    const storage = storageOf({ ...values, "database-url": to ?? from, "database-url-file": undefined });
    const direction = to === undefined ? "from PostgreSQL" : "to PostgreSQL";
    const { directory } = storage;
    const { database } = directory.files;
    if (direction === "to PostgreSQL" && !existsSync(database)) {
      throw new Failure(`${database} does not exist; see --data and --env`);
    }
    directory.prepare();
    // No server runs on the data directory meanwhile.
    using lock = await directory.lock();
    if (lock === undefined) {
      throw new Failure(`a server or another copy is running on ${directory.name}; stop it first`);
    }
    return await copyLocked(storage, direction, { ...context, isJson: values.json });
  },
});

async function copyLocked(
  storage: StorageConfig,
  direction: Direction,
  { isJson, ...context }: Context & { readonly isJson: boolean },
): Promise<FinalText> {
  const { copyEnvironment } = await import("../../../archive/copy.ts");
  const names = namesOf(storage, direction);
  const { environment } = storage;
  const progress = new Progress({ stream: context.errorStream, isJson });
  const copied = await copyEnvironment({
    storage,
    direction,
    entry: { ...attributionOf(context), action: "data.copied", after: names },
    onProgress: (reached) => progress.update(reached),
  })
    .catch((error: unknown) => {
      if (isBug(error) || error instanceof UsageError) throw error;
      const reason = errorMessage(error);
      throw new Failure(
        error instanceof OutcomeUnknown
          ? `${reason}; it is not known whether ${names.to} has the copy; the same command finds out`
          : `${names.to} has no complete copy yet: ${reason}; the same command begins again`,
      );
    })
    .finally(() => progress.end());
  if (copied.outcome === "in use") {
    const sessions = countOf(copied.sessions, "session");
    const { data } = describeStorage(storage);
    throw new Failure(`${sessions} of Petstore in ${environment} use ${data}; stop all servers first`);
  }
  if (copied.outcome === "nothing") {
    throw new Failure(`${names.from} has no data of ${environment}; see --from and --env`);
  }
  if (copied.outcome === "newer tables") {
    const { rejection = `a copy by this petstore ${packageJson.version} would lack what is new` } =
      copied.schema;
    throw new Failure(
      `${names.from} has tables of a newer release: ${rejection}; copy with the newest release that has run on it`,
    );
  }
  const { outcome, keysWithQuotas } = copied;
  if (outcome === "other") {
    const other = direction === "to PostgreSQL" ? "database" : "--data";
    throw new Failure(
      `${names.to} has other data of ${environment}, and a copy overwrites nothing; choose another ${other}, or remove that data first if nothing of it is needed`,
    );
  }
  const { tables } = copied.contents;
  if (isJson) return json({ ...names, outcome, tables, keysWithUsage: keysWithQuotas ?? null });
  const title =
    outcome === "same"
      ? `${names.to} has the same data as ${names.from}; there is nothing to copy.`
      : `Copied ${environment} from ${names.from} to ${names.to}. The rows and checksums of both are the same.`;
  const rows = Object.entries(tables).map(([name, sum]) => [name, grouped(sum.rows), sum.checksum]);
  const table = columns([["TABLE", "ROWS", "CHECKSUM"], ...rows], { numbers: [1] });
  const quotas =
    keysWithQuotas === undefined ? "" : `\nCopied the used quotas of ${countOf(keysWithQuotas, "key")}.\n`;
  return `${title}\n\n${table}${quotas}`;
}

function namesOf(storage: StorageConfig, direction: Direction) {
  const sqlite = `SQLite in ${resolve(storage.directory.path)}`;
  const postgres = describeStorage(storage).data;
  return direction === "to PostgreSQL" ? { from: sqlite, to: postgres } : { from: postgres, to: sqlite };
}
