/** The data that the killed commands work on. */
import { cpSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { temporaryFolder } from "../harness/cleanup.ts";
import { runPetstore } from "../harness/petstore.ts";
import { newUsage } from "../src/domain/rate-limit.ts";
import { type Contents, contentsOf } from "../src/archive/contents.ts";
import { openSqlite } from "../src/store/sqlite/store.ts";
import { inspectDatabase } from "../src/store/sqlite/snapshot.ts";
import { sqliteTables } from "../src/store/sqlite/tables.ts";
import type { Counters, TableStore } from "../src/store/tables.ts";
import { openUsageStore } from "../src/store/sqlite/usage-store.ts";

/** In the database that a restore replaces, so that it can be told from the backup. */
export const MORE_PETS = 10;

export interface Fixture {
  /** A data directory. Nothing changes it. */
  readonly data: string;
  readonly contents: Contents;
  readonly backup: string;
  /** A later state of the data. */
  readonly laterData: string;
}

export const sqliteIn = (dataDir: string) => sqliteTables(join(dataDir, "production.db"));
export const petsIn = (path: string) => inspectDatabase(path).rows["pets"] ?? 0;
export const auditEntriesIn = (path: string) => inspectDatabase(path).rows["audit"] ?? 0;

export async function createFixture(pets: number): Promise<Fixture> {
  const folder = temporaryFolder("faults-backup");
  const [data, laterData, backups] = [join(folder, "data"), join(folder, "later"), join(folder, "backups")];
  await succeed("keys", "create", "--name", "test", "--plan", "pro", "--data", data);
  await addPets(data, pets);
  saveUsage(data);
  await succeed("backup", backups, "--data", data);
  cpSync(data, laterData, { recursive: true });
  await addPets(laterData, MORE_PETS);
  const name = readdirSync(backups).find((entry) => !entry.startsWith(".")) ?? "";
  return { data, laterData, backup: join(backups, name), contents: await contentsIn(sqliteIn(data)) };
}

export async function succeed(...argv: string[]): Promise<void> {
  const { code, err } = await runPetstore(...argv);
  if (code !== 0) throw new Error(`petstore ${argv[0]}: ${err}`);
}

async function addPets(data: string, count: number): Promise<void> {
  const { store, close } = openSqlite(join(data, "production.db"));
  const create = (i: number) =>
    store.createPet({ name: `pet ${i}`, categoryId: BigInt(i) }, Date.now(), {
      keyId: 1,
      idempotencyKey: crypto.randomUUID(),
      fingerprint: "0".repeat(64),
    });
  for (let from = 0; from < count; from += 1_000) {
    await Promise.all(Array.from({ length: Math.min(1_000, count - from) }, (_, i) => create(from + i)));
  }
  await close();
}

/** Of the day in which key 1 has made so many requests. */
export const USED = 55;

function saveUsage(data: string): void {
  const usages = openUsageStore(join(data, "production-limits.db"));
  const day = { openedAt: Date.now(), used: USED, firstRejectedAt: -1, strikes: 0 };
  usages.save([
    [
      { kind: "key", id: 1 },
      { ...newUsage(), day },
    ],
  ]);
  usages.close();
}

/** Without the audit entry of the copy if the counters of its source are given. */
export async function contentsIn(end: TableStore, sourceCounters?: Counters): Promise<Contents> {
  const reader = await end.read();
  try {
    return await contentsOf(reader, sourceCounters && { sourceCounters });
  } finally {
    await reader.close();
  }
}
