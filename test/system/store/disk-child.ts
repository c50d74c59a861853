/** Run where DIRECTORY is a small disk of this process alone. Prints what a database on it does, as JSON. */
import { appendFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { openSqlite } from "../../../src/store/sqlite/store.ts";

const [directory = ""] = process.argv.slice(2);
const path = join(directory, "store.db");
const filler = join(directory, "filler");

function fill(): void {
  try {
    for (;;) appendFileSync(filler, new Uint8Array(1_024));
  } catch {
    // It is full.
  }
}

const messageOf = (error: unknown) => (error instanceof Error ? error.message : String(error));
const createPet = ({ store }: ReturnType<typeof openSqlite>) =>
  store.createPet({ name: "x".repeat(1_000), categoryId: 1n }, 0).then(() => "created", messageOf);
function openError(): string {
  try {
    openSqlite(path);
    return "opened";
  } catch (error) {
    return messageOf(error);
  }
}

const rescue = { to: `${path}.rescued`, onRescue() {}, onFailure() {} };
const first = openSqlite(path, { rescue });
await createPet(first);
await first.close();
fill();
const full = openSqlite(path, { rescue });
const { items } = await full.store.listPets({ limit: 9 });
const write = await createPet(full);
await full.close();
for (const file of [`${path}-wal`, `${path}-shm`]) rmSync(file);
fill();
const withoutFiles = openError();
rmSync(filler);
Bun.spawnSync(["mount", "-o", "remount,ro", directory]);
const readOnly = await createPet(openSqlite(path));
console.log(JSON.stringify({ read: items.length, write, withoutFiles, readOnly }));
