import { afterAll, expect, test } from "bun:test";
import { existsSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { encodeRejectedRow, RejectsFile } from "../../src/archive/rejects-file.ts";
import { disposableDirectory } from "../disposable-directory.ts";

const directory = disposableDirectory();
afterAll(() => directory.remove());

const CSV = { delimiter: ",", header: ["name", "categoryId"] } as const;
const NDJSON = { delimiter: undefined };

const WRONG = { path: ["it,"], message: "is wrong" };

const csv = (...cells: string[]) => {
  return { row: { line: 2, text: cells.join(","), cells }, problems: [WRONG] };
};
const json = (text: string) => ({ row: { line: 7, text }, problems: [{ path: [], message: 'is "wrong"' }] });

test("an error of an earlier import is replaced", () => {
  const header = ["name", "categoryId", "error"];
  expect(encodeRejectedRow(csv("Rex", "x", "old"), { ...CSV, header })).toBe('Rex,x,"line 2: it, is wrong"');
  expect(encodeRejectedRow(json('{"error":"o\\"ld","name":5}'), NDJSON)).toBe(
    '{"error":"line 7: the row is \\"wrong\\"","name":5}',
  );
});

test("text that is not a row of CSV is one cell", () => {
  const row = { line: 3, text: '"a"b,c', cells: ['"a"b,c'], problem: "has text after a closing quote" };
  expect(encodeRejectedRow({ row, problems: [] }, CSV)).toBe('"""a""b,c",line 3: ');
});

test.each([
  ['{"name":5}', '{"error":"line 7: the row is \\"wrong\\"","name":5}'],
  ["{ }", '{"error":"line 7: the row is \\"wrong\\""}'],
  ["oops", '{"error":"line 7: the row is \\"wrong\\"","text":"oops"}'],
  ["[1]", '{"error":"line 7: the row is \\"wrong\\"","text":"[1]"}'],
])("the object %j has its error in front", (text, line) => {
  expect(encodeRejectedRow(json(text), NDJSON)).toBe(line);
});

test("a link is not followed, whatever it is to", () => {
  const target = directory.path("of-this-user");
  writeFileSync(target, "precious");
  for (const to of [target, directory.path("missing")]) {
    const path = `${to}-link`;
    symlinkSync(to, path);
    expect(() => new RejectsFile(path, CSV).write(0, [csv("Rex", "x")])).toThrow("is a symbolic link");
  }
  expect(readFileSync(target, "utf8")).toBe("precious");
  expect(existsSync(directory.path("missing"))).toBeFalse();
});

test("a batch that is written again replaces what was written for it before", () => {
  const path = directory.path("rejects");
  const first = new RejectsFile(path, CSV);
  const position = first.write(0, [csv("Rex", "x")]);
  first.write(position, [csv("Mia", "y"), csv("Luna", "z")]);
  first.close();
  const second = new RejectsFile(path, CSV);
  second.write(position, [csv("Mia", "y")]);
  second.close();
  expect(readFileSync(path, "utf8")).toBe(
    'name,categoryId,error\nRex,x,"line 2: it, is wrong"\nMia,y,"line 2: it, is wrong"\n',
  );
  expect(statSync(path).mode & 0o777).toBe(0o600);
});

test("rows that are not CSV have no header", () => {
  const file = new RejectsFile(directory.path("rejects.ndjson"), NDJSON);
  const line = encodeRejectedRow(json("{}"), NDJSON);
  expect(file.write(0, [json("{}")])).toBe(line.length + 1);
  file.close();
  expect(readFileSync(file.path, "utf8")).toBe(`${line}\n`);
});

test("without a rejected row there is no file, and an earlier one is untouched", () => {
  const path = directory.path("none");
  writeFileSync(path, "mine");
  const file = new RejectsFile(path, NDJSON);
  expect(file.write(0, [])).toBe(0);
  file.close();
  expect(readFileSync(path, "utf8")).toBe("mine");
});
