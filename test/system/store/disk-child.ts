/* Run where DIRECTORY is a small disk of this process alone. Prints what a database on it does, as JSON. */

import { appendFileSync, copyFileSync, rmSync, statSync, truncateSync } from "node:fs";
import { join } from "node:path";
import { messageOf } from "../../../src/runtime/message-of.ts";
import { openSqlite } from "../../../src/store/sqlite/open-sqlite.ts";
import { BY } from "../../key-store-arguments.ts";

const [directory = "", previous = ""] = process.argv.slice(2);
const path = join(directory, "store.db");
const filler = join(directory, "filler");

function fill(): void {
  try {
    for (;;) appendFileSync(filler, new Uint8Array(1_024));
  } catch {
    // It is full.
  }
}

const createPet = ({ clientStore }: ReturnType<typeof openSqlite>) =>
  clientStore.createPet({ name: "x".repeat(1_000), categoryId: 1n }, 0).then(() => "created", messageOf);
async function openError(file = path): Promise<string> {
  try {
    const opened = openSqlite(file, { use: BY });
    const { items } = await opened.operatorPetStore.listPets({ limit: 100 });
    await opened.close();
    return `opened with ${items.length} pets`;
  } catch (error) {
    return messageOf(error);
  }
}

const rescue = { to: `${path}.rescued`, onRescue() {}, onFailure() {} };
const first = openSqlite(path, { rescue, server: {} });
await createPet(first);
await first.close();
fill();
const full = openSqlite(path, { rescue, server: {} });
const { items } = await full.operatorPetStore.listPets({ limit: 9 });
const write = await createPet(full);
await full.close();
for (const file of [`${path}-wal`, `${path}-shm`]) rmSync(file);
fill();
const withoutFiles = await openError();
// That of an earlier release has no log after a clean stop, and is migrated at its first start.
rmSync(filler);
const upgraded = join(directory, "previous.db");
copyFileSync(previous, upgraded);
fill();
const upgrades = new Set<string>();
while (![...upgrades].at(-1)?.startsWith("opened")) {
  upgrades.add(await openError(upgraded));
  truncateSync(filler, Math.max(0, statSync(filler).size - 16_384));
}
rmSync(filler);
Bun.spawnSync(["mount", "-o", "remount,ro", directory]);
const readOnly = await createPet(openSqlite(path));
console.log(JSON.stringify({ read: items.length, write, withoutFiles, upgrades: [...upgrades], readOnly }));
