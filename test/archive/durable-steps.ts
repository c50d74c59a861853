import { spyOn } from "bun:test";
import { type BigIntStats, fstatSync, lstatSync, readdirSync } from "node:fs";
import { basename, dirname } from "node:path";
import { disk } from "../../src/runtime/own-files.ts";

const versionOf = ({ ino, size, mtimeNs }: BigIntStats) => `${ino} ${size} ${mtimeNs}`;
const stats = (path: string) => lstatSync(path, { bigint: true });

/**
 * Records what reaches the disk and when files get their names. Every file that is renamed must have waited for the
 * disk after its last write, and its directory must wait for the disk afterwards.
 */
export function recordDurableSteps() {
  const { sync, rename, link } = disk;
  const synced = new Set<string>();
  const directories = new Set<bigint>();
  const named: string[] = [];
  const notSynced: string[] = [];
  /** The names that a power failure could still undo. */
  let undoable: { readonly name: string; readonly directory: bigint }[] = [];
  const name = (to: string) => {
    named.push(basename(to));
    undoable.push({ name: basename(to), directory: stats(dirname(to)).ino });
  };
  const spies = [
    spyOn(disk, "sync").mockImplementation((descriptor) => {
      const found = fstatSync(descriptor, { bigint: true });
      sync(descriptor);
      synced.add(versionOf(found));
      if (found.isDirectory()) directories.add(found.ino);
      if (found.isDirectory()) undoable = undoable.filter(({ directory }) => directory !== found.ino);
    }),
    spyOn(disk, "rename").mockImplementation((from, to) => {
      if (!synced.has(versionOf(stats(String(from))))) notSynced.push(basename(String(to)));
      rename(from, to);
      name(String(to));
    }),
    // What gets another name had one, and was made by SQLite.
    spyOn(disk, "link").mockImplementation((from, to) => {
      link(from, to);
      name(String(to));
    }),
  ];
  return {
    /** The names that files got, in their order. */
    named: named as readonly string[],
    /** The files that were renamed before all of them was on the disk, and the names that are not on it. */
    faults: () => [
      ...notSynced.map((file) => `${file} was written after it was last on the disk`),
      ...undoable.map((file) => `the directory of ${file.name} is not on the disk`),
    ],
    /** The files of a directory that are not on the disk as they are. */
    unsyncedIn: (directory: string) =>
      readdirSync(directory).filter((file) => !synced.has(versionOf(stats(`${directory}/${file}`)))),
    hasSynced: (directory: string) => directories.has(stats(directory).ino),
    [Symbol.dispose]: () => spies.forEach((spy) => spy.mockRestore()),
  };
}
