import { afterAll, afterEach, expect, test } from "bun:test";
import { appendFileSync, existsSync, readdirSync, readFileSync, readlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { gzipSync } from "node:zlib";
import { fileOutput, openInput } from "../../src/archive/files.ts";
import { disposableDirectory } from "../disposable-directory.ts";

const directory = disposableDirectory();
afterAll(() => directory.remove());

/** The files of the directory that this process has open, on a system that tells. */
function openFiles(): string[] {
  const descriptors = "/proc/self/fd";
  if (!existsSync(descriptors)) return [];
  const targets = readdirSync(descriptors).map((name) => linkTarget(join(descriptors, name)));
  return targets.filter((target) => target.startsWith(directory.directory));
}

/** The descriptor of the listing itself is closed already. */
function linkTarget(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    return "";
  }
}

afterEach(() => expect(openFiles()).toEqual([]));

const open = (path: string) =>
  openInput(path, () => {
    throw new Error("standard input is not read");
  });

async function textOf(path: string, change: () => void): Promise<string> {
  using input = await open(path);
  change();
  return (await Array.fromAsync(input.texts(() => {}))).join("");
}

test.each([
  ["plain", Buffer.from("name\nRex\n"), "Mia\n"],
  ["gzip", gzipSync("name\nRex\n"), gzipSync("Mia\n")],
])("a %s file that grows while it is read is not read to its end", async (name, content, more) => {
  const path = directory.path(name);
  writeFileSync(path, content);
  expect(await textOf(path, () => {})).toBe("name\nRex\n");
  await expect(textOf(path, () => appendFileSync(path, more))).rejects.toThrow(
    "it changed while it was read",
  );
});

test("standard input and large files are read in pieces, whose characters and bytes are whole; no copy has a name", async () => {
  const [text, bytes] = [`a${"é".repeat(200_000)}`, 400_001];
  const { TMPDIR } = process.env;
  process.env["TMPDIR"] = directory.directory;
  try {
    using input = await openInput("-", async function* () {
      yield Buffer.from(text.slice(0, 7));
      yield Buffer.from(text.slice(7));
    });
    expect(readdirSync(directory.directory).filter((name) => name.startsWith("petstore-import"))).toEqual([]);
    const read: number[] = [];
    const pieces = await Array.fromAsync(input.texts((done) => read.push(done)));
    expect([pieces.join("") === text, input.size, read]).toEqual([true, bytes, [262_144, bytes]]);
  } finally {
    if (TMPDIR === undefined) delete process.env["TMPDIR"];
    else process.env["TMPDIR"] = TMPDIR;
  }
});

test("what is not a regular file is refused, because a pipe without a writer would be read forever", async () => {
  await expect(open("/dev/null")).rejects.toThrow("it is not a regular file; pipe it into petstore import -");
});

test("of two exports to one file at the same time, the later one makes it, when it is complete", async () => {
  const path = directory.path("pets.csv");
  const first = fileOutput(path);
  await first.write("first\n");
  const second = fileOutput(path);
  await second.write("second, ");
  expect(() => first.finish()).toThrow(`another export to ${path} has begun meanwhile`);
  first.close();
  expect(existsSync(path)).toBeFalse();
  await second.write("complete\n");
  second.finish();
  second.close();
  expect(readFileSync(path, "utf8")).toBe("second, complete\n");
});

test("an export that fails leaves nothing", async () => {
  const path = directory.path("orders.csv");
  const output = fileOutput(path);
  await output.write("half");
  output.close();
  expect(readdirSync(dirname(path)).filter((name) => name.startsWith("orders"))).toEqual([]);
});
