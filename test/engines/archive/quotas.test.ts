import { afterAll, describe, expect, test } from "bun:test";
import { join } from "node:path";
import { type Quota, newQuota } from "../../../src/domain/rate-limit.ts";
import { DAY_MS } from "../../../src/text/time-units.ts";
import type { KeyQuotas } from "../../../src/store/sql/table-store.ts";
import { readBackupQuotas, readSavedQuotas } from "../../../src/store/sqlite/backup-tables.ts";
import { openQuotaStore } from "../../../src/store/sqlite/quota-store.ts";
import { postgresIn } from "../../../trials/harness/contents.ts";
import { postgresUrl } from "../../../trials/harness/postgres.ts";
import { fillData } from "../../archive/sample-data.ts";
import { cleanUp, cliDirectory, InProcessCli } from "../../cli/cli.ts";
import { fixtureBackups } from "../upgrade/previous-release.ts";

afterAll(cleanUp);

const NOW = Date.now();
const used = (day: number, changes: Partial<Quota> = {}, at = NOW - 1_000): Quota => ({
  minute: { openedAt: at, used: 5, graceBeganAt: at + 10, strikes: 3 },
  day: { openedAt: at, used: day, graceBeganAt: -1, strikes: 0 },
  bannedAt: -1,
  bannedUntil: -1,
  lastBanMs: 0,
  ...changes,
});
const BAN = { bannedAt: NOW - 500, bannedUntil: NOW + 3_000_000 };

/** Quotas of the two keys of the sample data, and of more keys than one statement stores. */
const QUOTAS: KeyQuotas = [
  [1, used(55)],
  [2, used(70, BAN)],
  // The last ban doubles the next one.
  [3, { ...newQuota(), bannedUntil: NOW - 7_000, lastBanMs: 300_000 }],
  ...Array.from({ length: 1_100 }, (_, i) => [i + 4, used(i + 1, {}, NOW - i)] as const),
];

interface Database {
  readonly cli: InProcessCli;
  readonly flags: readonly string[];
  quotas(): Promise<KeyQuotas>;
}

function newCli(): InProcessCli {
  const cli = new InProcessCli({ hasData: false });
  // PostgreSQL counts by the machine's clock.
  cli.clock.now = cli.clock.steadyNow = () => Date.now();
  return cli;
}

const ENGINES: Readonly<Record<string, () => Promise<Database>>> = {
  async SQLite() {
    const cli = newCli();
    return { cli, flags: [], quotas: async () => readSavedQuotas(join(cli.dataDir, "production-limits.db")) };
  },
  async PostgreSQL() {
    const url = await postgresUrl();
    const quotas = async () => {
      await using reader = await postgresIn(url).read();
      return (await reader.quotas()).quotas;
    };
    return { cli: newCli(), flags: ["--database-url", url], quotas };
  },
};
const newDatabase = async (engine: string): Promise<Database> => {
  const make = ENGINES[engine];
  if (make === undefined) throw new Error(engine);
  return make();
};

const sorted = (quotas: KeyQuotas) => quotas.toSorted(([a], [b]) => a - b);

async function succeed({ cli, flags }: Database, ...line: readonly string[]): Promise<string> {
  const { code, out } = await cli.run([...line, ...flags]);
  expect(code).toBe(0);
  return out;
}

/** Backs up, and returns the path of the backup. */
async function backUp(database: Database): Promise<string> {
  return JSON.parse(await succeed(database, "backup", cliDirectory(), "--json")).path;
}

/** Stores quotas of keys as a server does on SQLite. */
function save(cli: InProcessCli, quotas: KeyQuotas): void {
  const store = openQuotaStore(join(cli.dataDir, "production-limits.db"));
  store.save(quotas.map(([id, quota]) => [{ kind: "key", id }, quota]));
  store.close();
}

/** A backup of a database of SQLite with these quotas. */
async function backupWith(quotas: KeyQuotas): Promise<string> {
  const source = await newDatabase("SQLite");
  await fillData(source.cli.dataDir);
  save(source.cli, quotas);
  return backUp(source);
}

const first = await backupWith(QUOTAS);

describe.each(["SQLite", "PostgreSQL"])("from %s", (from) => {
  test.each(["SQLite", "PostgreSQL"])(
    "to %s: a backup and a restore keep used quotas and bans",
    async (to) => {
      const [source, target] = [await newDatabase(from), await newDatabase(to)];
      await succeed(source, "restore", first);
      const backup = await backUp(source);
      expect(sorted(readBackupQuotas(backup))).toEqual(sorted(QUOTAS));
      await succeed(target, "restore", backup);
      expect(sorted(await target.quotas())).toEqual(sorted(QUOTAS));
      for (const database of [source, target]) {
        const keys: { usage: { day: { used: number } } }[] = JSON.parse(
          await succeed(database, "keys", "list", "--json"),
        );
        expect(keys.map(({ usage }) => usage.day.used)).toEqual([55, 70]);
        expect(keys[1]).toMatchObject({ state: "banned" });
      }
    },
  );
});

const LATER = { bannedAt: NOW - 100, bannedUntil: NOW + 4_000_000 };
const LONG_AGO = used(55, { bannedAt: NOW - 3 * DAY_MS, bannedUntil: NOW - 2 * DAY_MS }, NOW - 3 * DAY_MS);

/** What a restore leaves of the present quota of a key and the one in the backup. */
const MERGED: Readonly<
  Record<string, { present?: Quota; backup?: Quota; after: Readonly<Record<string, unknown>> }>
> = {
  "used since": { present: used(60), backup: used(55), after: { day: { used: 60 } } },
  "used before": { present: used(1), backup: used(55), after: { day: { used: 55 } } },
  "only the backup has it": { backup: used(55, BAN), after: { day: { used: 55 }, ...BAN } },
  "only the present data have it": { present: used(60, BAN), after: { day: { used: 60 }, ...BAN } },
  "banned again since": { present: used(60, LATER), backup: used(55, BAN), after: LATER },
  "a ban of the backup that lasts": { present: used(60), backup: used(60, BAN), after: BAN },
  "a ban since": { present: used(60, BAN), backup: used(55), after: BAN },
  "windows and a ban that are over": {
    present: used(2),
    backup: LONG_AGO,
    after: { day: { used: 2 }, bannedUntil: -1 },
  },
};

test.each(["SQLite", "PostgreSQL"])(
  "a restore over the data of %s gives back no used quota and lifts no ban, also if it is repeated",
  async (engine) => {
    const quotasOf = (which: "present" | "backup") =>
      Object.values(MERGED).flatMap((each, i) => (each[which] ? [[i + 1, each[which]] as const] : []));
    const database = await newDatabase(engine);
    await succeed(database, "restore", await backupWith(quotasOf("present")));
    const backup = await backupWith(quotasOf("backup"));
    for (let i = 0; i < 2; i++) {
      await succeed(database, "restore", backup, "--replace");
      const quotas = new Map(await database.quotas());
      const after = Object.entries(MERGED).map(([name], index) => [name, quotas.get(index + 1)]);
      expect(Object.fromEntries(after)).toMatchObject(
        Object.fromEntries(Object.entries(MERGED).map(([name, each]) => [name, each.after])),
      );
    }
  },
);

test.each(["SQLite", "PostgreSQL"])("a backup of 1.3.0, which has no quotas, restores to %s", async (to) => {
  const target = await newDatabase(to);
  await succeed(target, "restore", fixtureBackups("1.3.0"));
  if (to === "SQLite") await succeed(target, "migrate");
  expect(JSON.parse(await succeed(target, "keys", "list", "--json"))).toHaveLength(5);
  expect(await target.quotas()).toEqual([]);
});
