import { expect, test } from "bun:test";
import { join } from "node:path";
import { temporaryFolder } from "../../../trials/harness/cleanup.ts";

test("a database on a disk that was filled after a clean stop is read; full and read-only disks are named", async () => {
  const directory = temporaryFolder("disk");
  const asRoot = process.getuid?.() === 0 ? [] : ["--map-root-user"];
  const mount = 'mount -t tmpfs -o size=1m tmpfs "$0" && exec "$@"';
  const child = Bun.spawn(
    [
      ...["unshare", "--mount", ...asRoot, "sh", "-c", mount, directory],
      ...[process.execPath, join(import.meta.dir, "disk-child.ts"), directory],
    ],
    { stderr: "inherit" },
  );
  expect(JSON.parse(await child.stdout.text())).toEqual({
    read: 1,
    write: "SQLite: the disk is full",
    withoutFiles: `cannot open the database ${directory}/store.db: the disk is full`,
    readOnly: `SQLite: the file system of ${directory} is read-only`,
  });
}, 30_000);
