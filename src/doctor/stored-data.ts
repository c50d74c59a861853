/* What SQLite and PostgreSQL have in common: the version of the schema, and the last backup. */

import { DAY_MS } from "../text/time-units.ts";
import type { SchemaState } from "../store/sql/migrations.ts";
import type { ClockComparison } from "./clock.ts";
import { check, type Finding } from "./finding.ts";

/** The findings of a check, and the facts that the check of the clock needs. */
export interface StoreFindings {
  readonly findings: readonly Finding[];
  readonly newestTime?: number | undefined;
  readonly clocks?: readonly ClockComparison[];
}

const migrations = check("migrations");
export const UPGRADE = "install that release, or restore a backup from before the upgrade";

export function schemaFinding({ version, supportedVersion: newest, rejection }: SchemaState): Finding {
  if (rejection !== undefined) return migrations.error(rejection, UPGRADE);
  if (version === newest) return migrations.ok(`the schema has version ${version}, the newest`);
  return version > newest
    ? migrations.ok(`the schema has version ${version}, of a newer release, and this one can run on it`)
    : migrations.warning(
        `the schema has version ${version}, and the next start migrates it to ${newest}`,
        "make a backup before you start this release",
      );
}

const backup = check("backup");
const OLD_BACKUP_MS = 2 * DAY_MS;

/** Checks the age of the last backup that `petstore backup` has recorded. */
export function backupFinding(lastAt: number | undefined, now: number): Finding {
  const remedy = "run petstore backup every night, as docs/backup.md shows";
  if (lastAt === undefined)
    return backup.warning("petstore backup has never been run on this database", remedy);
  const text = `the last backup was made ${new Date(lastAt).toISOString()}`;
  return now - lastAt > OLD_BACKUP_MS ? backup.warning(text, remedy) : backup.ok(text);
}
