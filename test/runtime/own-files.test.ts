import { afterAll, describe, expect, spyOn, test } from "bun:test";
import {
  chmodSync,
  chownSync,
  closeSync,
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { dirname, join, relative } from "node:path";
import {
  createFile,
  createFileOfThisUser,
  disk,
  inheritOwner,
  link,
  makePrivate,
  openFoundFile,
  openOwnFile,
  readOwnFile,
  removeDirectory,
  removeFile,
  renameDurably,
  replaceFile,
  syncToDisk,
} from "../../src/runtime/own-files.ts";
import { disposableDirectory } from "../disposable-directory.ts";

/* What can be put in the place of a file while a program runs: the check before it may have found a file. */

const directory = disposableDirectory();
afterAll(() => directory.remove());

const OPENERS: Record<string, (path: string) => unknown> = {
  openOwnFile: (path) => closeSync(openOwnFile(path)),
  createFile: (path) => closeSync(createFile(path)),
  openFoundFile: (path) => closeSync(openFoundFile(path)),
  readOwnFile,
  syncToDisk,
};

const openDescriptors = () => readdirSync("/proc/self/fd").length;

let number = 0;
const newPath = () => directory.path(`file-${++number}`);
function newLink(target: string): string {
  const path = newPath();
  symlinkSync(target, path);
  return path;
}

describe.each(Object.entries(OPENERS))("%s", (_, open) => {
  test("follows no link, and creates no file where one leads", () => {
    const target = newPath();
    const descriptors = openDescriptors();
    expect(() => open(newLink(target))).toThrow();
    expect(existsSync(target)).toBeFalse();
    writeFileSync(target, "precious", { mode: 0o644 });
    expect(() => open(newLink(target))).toThrow();
    expect(readFileSync(target, "utf8")).toBe("precious");
    expect(statSync(target).mode & 0o777).toBe(0o644);
    if (open !== OPENERS["createFile"]) open(target);
    expect(openDescriptors()).toBe(descriptors);
  });
});

test.each([
  ["openOwnFile", openOwnFile],
  ["readOwnFile", readOwnFile],
])("%s opens no pipe, and does not wait for its writer", async (_, open) => {
  const path = newPath();
  expect(await Bun.spawn(["mkfifo", path]).exited).toBe(0);
  const descriptors = openDescriptors();
  expect(() => open(path)).toThrow(`${path} is not a regular file`);
  expect(() => open(newLink(path))).toThrow(/: it is a symbolic link; only its directory may be one$/);
  expect(openDescriptors()).toBe(descriptors);
});

test("makePrivate changes the mode of no file where a link leads", () => {
  const target = newPath();
  writeFileSync(target, "precious", { mode: 0o644 });
  expect(makePrivate(newLink(target))).toBeFalse();
  expect(statSync(target).mode & 0o777).toBe(0o644);
});

test("makePrivate changes the mode of no file that root has in a directory of another user, who can name any file there", () => {
  const path = directory.path(`of-another-${++number}`);
  mkdirSync(path);
  const [target, file] = [newPath(), join(path, "file")];
  writeFileSync(target, "precious", { mode: 0o644 });
  linkSync(target, file);
  expect([makePrivate(file), statSync(file).mode & 0o777, makePrivate(file)]).toEqual([true, 0o600, false]);
  expect(makePrivate(newPath())).toBeFalse();
  chmodSync(file, 0o644);
  // Only root can give the directory away. Nobody else can change the mode of a file of another user.
  if (process.getuid?.() !== 0) return;
  chownSync(path, 65_534, 65_534);
  expect(makePrivate(file)).toBeFalse();
  expect(statSync(target).mode & 0o777).toBe(0o644);
});

test.each([
  ["replaceFile", (path: string) => replaceFile(path, "new")],
  ["removeFile", removeFile],
])("%s replaces the link, not the file where it leads", (_, change) => {
  const target = newPath();
  writeFileSync(target, "precious");
  const path = newLink(target);
  change(path);
  expect(lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() ?? false).toBeFalse();
  expect(readFileSync(target, "utf8")).toBe("precious");
});

/** Records what the disk is told, by names below the directory of the tests. */
function recordDisk() {
  const calls: string[] = [];
  const nameOf = (path: string) => relative(directory.directory, path) || ".";
  const { sync, rename, link: linkTo } = disk;
  const spies = [
    spyOn(disk, "sync").mockImplementation((descriptor) => {
      calls.push(`sync ${nameOf(readlinkSync(`/proc/self/fd/${descriptor}`))}`);
      sync(descriptor);
    }),
    spyOn(disk, "rename").mockImplementation((from, to) => {
      calls.push(`rename ${nameOf(`${from}`)} ${nameOf(`${to}`)}`);
      rename(from, to);
    }),
    spyOn(disk, "link").mockImplementation((from, to) => {
      calls.push(`link ${nameOf(`${from}`)} ${nameOf(`${to}`)}`);
      linkTo(from, to);
    }),
  ];
  return {
    rename: spies[1],
    taken: () => calls.splice(0),
    [Symbol.dispose]: () => spies.forEach((spy) => spy.mockRestore()),
  };
}

test("replaceFile writes a text before it names it, makes the directories that are missing, and leaves nothing else", () => {
  using recorded = recordDisk();
  const path = directory.path("made/below/file");
  const temporary = `${path}.${process.pid}`;
  const written = (text: string) => {
    expect([readFileSync(path, "utf8"), readdirSync(dirname(path))]).toEqual([text, ["file"]]);
    expect(statSync(path).mode & 0o777).toBe(0o600);
  };
  const steps = [
    `sync made/below/file.${process.pid}`,
    `rename made/below/file.${process.pid} made/below/file`,
    "sync made/below",
  ];
  replaceFile(path, "one");
  expect(recorded.taken()).toEqual(["sync made", "sync .", ...steps]);
  written("one");
  expect(statSync(dirname(path)).mode & 0o777).toBe(0o700);
  // An earlier process with this number has left its file.
  writeFileSync(temporary, "half");
  replaceFile(path, "two");
  expect(recorded.taken()).toEqual(steps);
  written("two");
  recorded.rename?.mockImplementation(() => {
    throw new Error("no space");
  });
  expect(() => replaceFile(path, "three")).toThrow("no space");
  written("two");
});

test("a name is on the disk in each directory that it changes", () => {
  mkdirSync(directory.path("from"));
  mkdirSync(directory.path("to"));
  using recorded = recordDisk();
  writeFileSync(directory.path("from/a"), "a");
  renameDurably(directory.path("from/a"), directory.path("to/b"));
  expect(recorded.taken()).toEqual(["rename from/a to/b", "sync to", "sync from"]);
  renameDurably(directory.path("to/b"), directory.path("to/c"));
  expect(recorded.taken()).toEqual(["rename to/b to/c", "sync to"]);
  link(directory.path("to/c"), directory.path("from/d"));
  expect(recorded.taken()).toEqual(["link to/c from/d", "sync from"]);
  expect(readFileSync(directory.path("from/d"), "utf8")).toBe("a");
});

test("readOwnFile reads up to 1 MiB, and nothing if there is no file", () => {
  const path = newPath();
  expect(readOwnFile(path)).toBeUndefined();
  writeFileSync(path, "x".repeat(1_048_576));
  expect(readOwnFile(path)).toHaveLength(1_048_576);
  writeFileSync(path, "x".repeat(1_048_577));
  expect(() => readOwnFile(path)).toThrow(`${path} is too large`);
});

test("a new file belongs to whom its directory belongs, or first to this user alone; a found file is opened without following a link", () => {
  const owned = directory.path("owned");
  mkdirSync(owned);
  // Only root can give the directory away.
  const isRoot = process.getuid?.() === 0;
  if (isRoot) chownSync(owned, 65_534, 65_533);
  const descriptors = openDescriptors();
  const statsOf = (name: string) => statSync(join(owned, name));
  closeSync(createFile(join(owned, "own")));
  const descriptor = createFileOfThisUser(join(owned, "copy"));
  const mine = statsOf("copy");
  expect([mine.uid, mine.mode & 0o777]).toEqual([process.getuid?.() ?? mine.uid, 0o600]);
  inheritOwner(descriptor, join(owned, "copy"));
  closeSync(descriptor);
  for (const name of ["own", "copy"]) {
    const { uid, gid, mode } = statsOf(name);
    expect([uid, gid, mode & 0o777]).toEqual([statSync(owned).uid, isRoot ? 65_533 : gid, 0o600]);
    expect(() => createFileOfThisUser(join(owned, name))).toThrow("EEXIST");
  }
  symlinkSync(join(owned, "own"), join(owned, "link"));
  closeSync(openFoundFile(join(owned, "own")));
  expect(() => openFoundFile(join(owned, "link"))).toThrow("it is a symbolic link");
  expect(() => openFoundFile(owned)).toThrow("is not a regular file");
  expect(openDescriptors()).toBe(descriptors);
});

test("removing what does not exist is no error", () => {
  removeFile(newPath());
  removeDirectory(newPath());
  const path = newPath();
  mkdirSync(join(path, "below"), { recursive: true });
  removeDirectory(path);
  expect(existsSync(path)).toBeFalse();
});
