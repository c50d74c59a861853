import type { Backup } from "../../../archive/backup.ts";
import { dataLocationOf } from "../../../config/storage.ts";
import { DATABASE_OPTIONS, JSON_OPTION } from "../../../config/options.ts";
import { directory, integerWithin } from "../../../config/value-types.ts";
import { countOf } from "../../../text/formatting.ts";
import packageJson from "../../../../package.json" with { type: "json" };
import { errorMessage } from "../../error-message.ts";
import { defineCommand } from "../../command.ts";
import { json } from "../../output.ts";
import { Progress } from "./progress.ts";

export const backup = defineCommand({
  name: "backup",
  summary: "Back up everything while servers run",
  description:
    "Copies the data of an environment, which is in SQLite or in PostgreSQL, to a new file in DIR, a database of SQLite, and its checksum to a file next to it, and reads all of the copy to verify it. Servers may be running. A backup has its name only when it is complete, so the command can be run by cron and be interrupted at any time. Used quotas and bans of keys are in it, and sessions are not.",
  data: "inspects",
  positionals: { DIR: { ...directory, expected: "the path of a directory for backups" } },
  options: {
    keep: {
      type: integerWithin({ min: 1, max: 10_000 }),
      defaultText: "all",
      help: "Number of backups of the environment to keep, the new one included; older ones are removed",
    },
    ...DATABASE_OPTIONS,
    ...JSON_OPTION,
  },
  examples: ["petstore backup /var/backups/petstore", "petstore backup /var/backups/petstore --keep 14"],
  async run({ positionals, values }, { clock, errorStream, warn }) {
    const location = dataLocationOf(values);
    const { makeBackup } = await import("../../../archive/backup.ts");
    const progress = new Progress({ stream: errorStream, isJson: values.json });
    const made = await makeBackup({
      location,
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

function summaryOf({ path, rows, bytes, removed }: Backup): string {
  const removal = removed.length === 0 ? "" : `Removed ${countOf(removed.length, "older backup")}.\n`;
  return `Backed up ${describeRows(rows)} to ${path} (${(bytes / 1e6).toFixed(1)} MB) and verified the copy.\n${removal}`;
}

/** `1,000 pets, 20 orders and 3 keys`; nothing for a database without them. */
export function describeRows(rows: Readonly<Record<string, number>>): string {
  const { pets, orders, api_keys: keys } = rows;
  if (pets === undefined) return "";
  return `${countOf(pets, "pet")}, ${countOf(orders ?? 0, "order")} and ${countOf(keys ?? 0, "key")}`;
}
