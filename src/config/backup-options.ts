import { postgresUrl } from "./address-types.ts";
import type { Options } from "./parse-options.ts";
import { boolean, directory, file, integer } from "./value-types.ts";

/** The positional of `petstore backup`. */
export const backupDirectory = { ...directory, expected: "the path of a directory for backups" };
/** The positional of `petstore restore`. */
export const backupPath = {
  ...directory,
  expected: "the path of a backup, or of a directory of backups, whose newest one is meant",
};

/** Further options of `petstore backup`. */
export const BACKUP_OPTIONS = {
  keep: {
    type: integer({ min: 1, max: 10_000 }),
    defaultText: "all",
    help: "Number of backups of the environment to keep, the new one included; older ones are removed",
  },
} as const satisfies Options;

/** Further options of `petstore restore`. */
export const RESTORE_OPTIONS = {
  replace: {
    type: boolean,
    default: false,
    help: "Move the present databases to another directory in --data first; without it, a restore overwrites nothing",
  },
  "dry-run": { type: boolean, default: false, help: "Show what would be done, and change nothing" },
} as const satisfies Options;

/** Further options of `petstore copy`. */
export const COPY_OPTIONS = {
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
} as const satisfies Options;
