import { dataLocationOf } from "../../../config/storage.ts";
import type { DataLocation } from "../../../data-location.ts";
import { DATABASE_OPTIONS, JSON_OPTION } from "../../../config/options.ts";
import { switchOption } from "../../../config/value-types.ts";
import {
  POSTGRES_MIGRATIONS,
  releaseOfTables,
  SQLITE_MIGRATIONS,
} from "../../../store/sql/migration-steps.ts";
import { latestVersion, type Migration, type SchemaState } from "../../../store/sql/migrations.ts";
import { attributionOf, type Context, defineCommand, Failure } from "../../command.ts";
import { columns, json } from "../../output.ts";

export const migrateCommand = defineCommand({
  name: "migrate",
  summary: "Migrate the tables of an earlier release, or make a database",
  description:
    "Brings the tables up to date, as petstore serve does when it starts, or makes them where there are none. No other command migrates, so this one is for a role of PostgreSQL that may change tables, for a time of its own, and for petstore apply before the first start. It lists each step, and whether servers of the release that the tables have can go on after it. A step after which they cannot is rejected while such servers run. The migration is in the audit trail.",
  data: "migrates",
  options: {
    "dry-run": switchOption("List the steps, and change nothing"),
    force: switchOption(
      "Migrate although servers run that cannot use the new tables: they fail from then on",
    ),
    ...DATABASE_OPTIONS,
    ...JSON_OPTION,
  },
  examples: [
    "petstore migrate --dry-run",
    "petstore migrate --database-url postgres://owner@db.example.com/petstore",
  ],
  async run({ values }, context) {
    const { "dry-run": isDryRun, force: isForced } = values;
    const location = dataLocationOf(values);
    const plan = await planOf(location);
    if (!isDryRun) await applyMigrations(location, isForced, context);
    return values.json ? json({ ...plan, isDryRun }) : describe(plan, isDryRun, location);
  },
});

interface Step extends Pick<Migration, "version" | "name"> {
  readonly oldestRelease: string;
  /** Whether servers of the release that the tables have can go on after the step. */
  readonly keepsServers: boolean;
}

interface Plan {
  /** The version of the tables; 0 if there are none. */
  readonly from: number;
  readonly to: number;
  /** The release that the tables have; null if there are none. */
  readonly release: string | null;
  readonly steps: readonly Step[];
}

async function planOf(location: DataLocation): Promise<Plan> {
  const state = location.mayHaveDatabase() ? await stateOf(location) : undefined;
  const { version: from = 0, rejection } = state ?? {};
  if (rejection !== undefined) throw new Failure(`cannot migrate ${location.name}: ${rejection}`);
  const engine = location.postgres === undefined ? "sqlite" : "postgres";
  const migrations = engine === "sqlite" ? SQLITE_MIGRATIONS : POSTGRES_MIGRATIONS;
  const release = releaseOfTables(from, engine) ?? null;
  const missing = migrations.filter(({ version }) => version > from);
  let keepsServers = release !== null;
  const steps = missing.map(({ version, name, worksWith: oldestRelease }) => {
    // What a step keeps servers from, no later one allows again.
    keepsServers &&= Bun.semver.order(oldestRelease, release ?? "") <= 0;
    return { version, name, oldestRelease, keepsServers };
  });
  return { from, to: Math.max(from, latestVersion(migrations)), release, steps };
}

async function stateOf(location: DataLocation): Promise<SchemaState | undefined> {
  const { tableStoreOf } = await import("../../../archive/open-tables.ts");
  const tables = await tableStoreOf(location);
  return (await tables.exists()) ? tables.schema() : undefined;
}

async function applyMigrations(location: DataLocation, isForced: boolean, context: Context): Promise<void> {
  const { openStores } = await import("../../../adapters/open-stores.ts");
  const { postgres, directory } = location;
  if (postgres === undefined) directory.prepare();
  // A server on SQLite holds this lock. Without one, none starts meanwhile.
  using lock = postgres === undefined ? await directory.lock() : undefined;
  const isServedElsewhere = postgres === undefined && lock === undefined;
  const stores = await openStores(location, {
    use: { ...attributionOf(context), isForced, isServedElsewhere },
  });
  await stores.close();
}

function describe({ from, to, release, steps }: Plan, isDryRun: boolean, location: DataLocation): string {
  const where = location.name;
  if (steps.length === 0) return `The tables of ${where} are up to date (version ${from}).\n`;
  if (release === null)
    return `${isDryRun ? "A migration makes" : "Made"} the tables of ${where} (version ${to}).\n`;
  const rows = steps.map(({ version, keepsServers, name }) => [
    `${version}`,
    keepsServers ? "go on" : "must stop",
    name,
  ]);
  const title = isDryRun
    ? `A migration changes the tables of ${where} from version ${from} to ${to}`
    : `Migrated the tables of ${where} from version ${from} to ${to}`;
  return `${title}:\n\n${columns([["STEP", `SERVERS OF ${release}`, ""], ...rows])}`;
}
