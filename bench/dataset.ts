import { Database } from "bun:sqlite";
import { join } from "node:path";
import { temporaryFolder } from "../harness/cleanup.ts";
import { createKey } from "../harness/petstore.ts";
import { requestValues } from "./request-values.ts";

export type Dataset = Awaited<ReturnType<typeof prepareDataset>>;

/** A data folder of Petstore with pets in it, API keys for it, and values for requests. */
export async function prepareDataset(pets: number) {
  const folder = temporaryFolder(`bench-${pets}`);
  const storage = ["--data", folder];
  const { key: unlimited } = await createKey(storage);
  const { key: exhausted } = await createKey(storage, "enterprise", "--per-minute", "1", "--per-day", "1");
  // Well-formed, and of another database.
  const { key: unknown } = await createKey(["--data", temporaryFolder("bench-unknown-key")]);
  const database = join(folder, "production.db");
  await insertPets(database, pets);
  return { folder, database, pets, keys: { unlimited, exhausted, unknown }, values: requestValues(pets) };
}

const NAMES = "Rex Mia Luna Bello Minka Oskar Nala Balu Felix Kira Rocky Lilly Simba Emma Bruno Socke".split(
  " ",
);
/** A quarter of the pets has no status. */
const STATUSES = ["available", "pending", "sold", null];
/** Takes a second or two, after which signals are handled. */
const BATCH = 1_000_000;

async function insertPets(path: string, pets: number): Promise<void> {
  using database = new Database(path, { readwrite: true });
  // Nothing else has opened the file, and a run that breaks off does not use it.
  for (const pragma of ["journal_mode = OFF", "synchronous = OFF"]) database.run(`PRAGMA ${pragma}`);
  const insert = database.prepare("INSERT INTO pets (name, category_id, status) VALUES (?, ?, ?)");
  const insertBatch = database.transaction((first: number, last: number) => {
    for (let n = first; n <= last; n++) {
      insert.run(NAMES[n % NAMES.length] ?? "", n % 1_000, STATUSES[n % STATUSES.length] ?? null);
    }
  });
  for (let first = 1; first <= pets; first += BATCH) {
    insertBatch(first, Math.min(pets, first + BATCH - 1));
    await Bun.sleep(0);
  }
  database.run("PRAGMA journal_mode = WAL");
  // The disk is idle when the measurement begins.
  Bun.spawnSync(["sync", path]);
}
