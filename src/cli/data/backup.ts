import type { Backup } from "../../archive/backup.ts";
import { describeStorage, type StorageConfig, storageOf } from "../../config/config.ts";
import { JSON_OPTION, STORAGE_OPTIONS } from "../../config/options.ts";
import { directory, integerWithin } from "../../config/value-types.ts";
import { countOf } from "../../text/formatting.ts";
import packageJson from "../../../package.json" with { type: "json" };
import { errorMessage } from "../arguments.ts";
import { defineCommand, Failure } from "../command.ts";
import { databaseExists } from "../operation-call.ts";
import { json } from "../output.ts";
import { Progress } from "./progress.ts";

export const backup = defineCommand({
  name: "backup",
  summary: "Back up the SQLite databases while the server runs",
  description:
    "Copies the databases of an environment to a new directory in DIR, with checksums, and reads all of the copy to verify it. The server may be running. A backup has its name only when it is complete, so the command can be run by cron and be interrupted at any time. PostgreSQL has its own tools: see docs/backup.md.",
  positionals: { DIR: { ...directory, expected: "the path of a directory for backups" } },
  options: {
    keep: {
      type: integerWithin({ min: 1, max: 10_000 }),
      defaultText: "all",
      help: "Number of backups of the environment to keep, the new one included; older ones are removed",
    },
    ...STORAGE_OPTIONS,
    ...JSON_OPTION,
  },
  examples: [
    "petstore backup /var/backups/petstore",
    "petstore backup /var/backups/petstore --keep 14 --env-file /etc/petstore/production.env",
  ],
  async run({ positionals, values }, { clock, errorStream, warn }) {
    const storage = storageOf(values);
    if (storage.databaseUrl !== undefined) throw notSqlite(storage);
    const { directory: source } = storage;
    if (!databaseExists(storage))
      throw new Failure(`${source.files.store} does not exist; see --data and --env`);
    const { makeBackup } = await import("../../archive/backup.ts");
    const progress = new Progress({ stream: errorStream, isJson: values.json, unit: "bytes" });
    const made = await makeBackup({
      source,
      directory: positionals.DIR,
      keep: values.keep,
      at: clock.now(),
      version: packageJson.version,
      onProgress: (reached) => progress.update(reached),
      onUnrecorded: (error) => warn(`the metrics do not show this backup: ${errorMessage(error)}`),
    }).finally(() => progress.end());
    return values.json ? json(made) : summaryOf(made);
  },
});

export function notSqlite(storage: StorageConfig): Failure {
  return new Failure(
    `the data is in ${describeStorage(storage).data}, and this command is for SQLite; use deploy/postgres/backup and pg_restore, see docs/backup.md`,
  );
}

function summaryOf({ path, files, bytes, removed }: Backup): string {
  const contents = files.flatMap(({ rows }) => describeRows(rows)).join("");
  const removal = removed.length === 0 ? "" : `Removed ${countOf(removed.length, "older backup")}.\n`;
  return `Backed up ${contents} to ${path} (${(bytes / 1e6).toFixed(1)} MB) and verified the copy.\n${removal}`;
}

/** `1,000 pets, 20 orders and 3 keys`; nothing for a database without them. */
export function describeRows(rows: Readonly<Record<string, number>>): string {
  const { pets, orders, api_keys: keys } = rows;
  if (pets === undefined) return "";
  return `${countOf(pets, "pet")}, ${countOf(orders ?? 0, "order")} and ${countOf(keys ?? 0, "key")}`;
}
