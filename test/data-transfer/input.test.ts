import { afterAll, expect, test } from "bun:test";
import { appendFileSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { openInput } from "../../src/data-transfer/input.ts";

const folder = mkdtempSync(join(tmpdir(), "petstore-input-"));
afterAll(() => rmSync(folder, { recursive: true }));

const open = (path: string) =>
  openInput(path, () => {
    throw new Error("standard input is not read");
  });

async function textOf(path: string, change: () => void): Promise<string> {
  const input = await open(path);
  try {
    change();
    return (await Array.fromAsync(input.texts(() => {}))).join("");
  } finally {
    input.close();
  }
}

test.each([
  ["plain", Buffer.from("name\nRex\n"), "Mia\n"],
  ["gzip", gzipSync("name\nRex\n"), gzipSync("Mia\n")],
])("a %s file that grows while it is read is not read to its end", async (name, content, more) => {
  const path = join(folder, name);
  writeFileSync(path, content);
  expect(await textOf(path, () => {})).toBe("name\nRex\n");
  await expect(textOf(path, () => appendFileSync(path, more))).rejects.toThrow(
    "it changed while it was read",
  );
});

test("what is not a regular file is refused, because a pipe without a writer would be read forever", async () => {
  await expect(open("/dev/null")).rejects.toThrow("it is not a regular file; pipe it into petstore import -");
});
