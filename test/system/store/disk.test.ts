import { expect, test } from "bun:test";
import { appendFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { temporaryDirectory } from "../../../trials/harness/cleanup.ts";
import { bearer } from "../../bearer.ts";
import { fixturesOf } from "../../engines/upgrade/previous-release.ts";
import { startPetstore } from "../../../trials/harness/petstore.ts";

/** A command that runs the one after it, for which the directory is a disk in memory. */
function onSmallDisk(directory: string, size: string): string[] {
  const asRoot = process.getuid?.() === 0 ? [] : ["--map-root-user"];
  const mount = `mount -t tmpfs -o size=${size},mode=700 tmpfs "$0" && exec "$@"`;
  return ["unshare", "--mount", ...asRoot, "sh", "-c", mount, directory];
}

test("a database on a disk that was filled after a clean stop is read; full and read-only disks are named", async () => {
  const directory = temporaryDirectory("disk");
  const child = Bun.spawn(
    [
      ...onSmallDisk(directory, "1m"),
      process.execPath,
      join(import.meta.dir, "disk-child.ts"),
      directory,
      join(fixturesOf("1.3.0"), "production.db"),
    ],
    { stderr: "inherit" },
  );
  expect(JSON.parse(await child.stdout.text())).toEqual({
    read: 1,
    write: "SQLite: the disk is full",
    upgrades: [`cannot open the database ${directory}/previous.db: the disk is full`, "opened with 100 pets"],
    withoutFiles: `cannot open the database ${directory}/store.db: the disk is full`,
    readOnly: `SQLite: the file system of ${directory} is read-only`,
  });
});

test("a full disk: /readyz says so, the event is an error, reads go on, and all is well when there is space", async () => {
  const directory = temporaryDirectory("disk");
  const server = await startPetstore(["--data", directory, "--port", "0"], onSmallDisk(directory, "8m"));
  const headers = { ...bearer(server.key), "Content-Type": "application/json" };
  const list = () => fetch(`${server.url}/pets`, { headers });
  const create = () =>
    fetch(`${server.url}/pets`, { method: "POST", headers, body: '{"name":"Rex","categoryId":1}' });
  const ready = async () => (await fetch(`${server.adminUrl}/readyz?verbose`)).text();
  expect(await ready()).toContain("[+]disk ok\n");

  const filler = `/proc/${server.pid}/root${directory}/filler`;
  try {
    for (;;) appendFileSync(filler, new Uint8Array(1_024));
  } catch {
    // It is full.
  }
  expect(await ready()).toContain("[-]disk failed\n");
  expect([(await create()).status, (await list()).status]).toEqual([503, 200]);
  expect(server.log).toContainEqual(
    expect.objectContaining({ level: "error", event: "database.unavailable" }),
  );
  rmSync(filler);
  expect(await ready()).toContain("[+]disk ok\n");
  expect((await create()).status).toBe(201);
  expect(await server.stop()).toBe(0);
});
