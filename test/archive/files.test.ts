import { afterAll, expect, test } from "bun:test";
import { appendFileSync, existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { gzipSync } from "node:zlib";
import { fileOutput, openInput } from "../../src/archive/files.ts";
import { disposableDirectory } from "../disposable-directory.ts";

const directory = disposableDirectory();
afterAll(() => directory.remove());

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
