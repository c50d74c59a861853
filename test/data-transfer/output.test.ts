import { afterAll, expect, test } from "bun:test";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname } from "node:path";
import { fileOutput } from "../../src/data-transfer/output.ts";
import { temporaryFolder } from "../store/temporary-folder.ts";

const folder = temporaryFolder();
afterAll(() => folder.remove());

test("of two exports to one file at the same time, the later one makes it, when it is complete", async () => {
  const path = folder.path("pets.csv");
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
  const path = folder.path("orders.csv");
  const output = fileOutput(path);
  await output.write("half");
  output.close();
  expect(readdirSync(dirname(path)).filter((name) => name.startsWith("orders"))).toEqual([]);
});
