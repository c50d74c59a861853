import { afterAll, describe, expect, test } from "bun:test";
import {
  chmodSync,
  chownSync,
  closeSync,
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import {
  createFile,
  makePrivate,
  openOwnFile,
  readOwnFile,
  removeFile,
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
  readOwnFile,
  syncToDisk,
};

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
    expect(() => open(newLink(target))).toThrow();
    expect(existsSync(target)).toBeFalse();
    writeFileSync(target, "precious", { mode: 0o644 });
    expect(() => open(newLink(target))).toThrow();
    expect(readFileSync(target, "utf8")).toBe("precious");
    expect(statSync(target).mode & 0o777).toBe(0o644);
  });
});

test.each([
  ["openOwnFile", openOwnFile],
  ["readOwnFile", readOwnFile],
])("%s opens no pipe, and does not wait for its writer", async (_, open) => {
  const path = newPath();
  expect(await Bun.spawn(["mkfifo", path]).exited).toBe(0);
  expect(() => open(path)).toThrow("is not a regular file");
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
  expect(makePrivate(file)).toBeTrue();
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
