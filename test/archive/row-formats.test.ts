import { describe, expect, test } from "bun:test";
import * as fc from "fast-check";
import { delimiterOf, RowReader } from "../../src/archive/row-reader.ts";
import { csvRow, ENCODERS, spreadsheetCell } from "../../src/archive/row-encoders.ts";
import { fileFieldsOf } from "../../src/archive/file-fields.ts";

/** Reads a text in pieces of the given lengths, again and again. */
function read(text: string, { lengths = [text.length], delimiter = delimiterOf(text) } = {}) {
  const reader = new RowReader(delimiter);
  const rows = [];
  let at = 0;
  for (let piece = 0; at < text.length; piece++) {
    const length = Math.max(1, lengths[piece % lengths.length] ?? 1);
    rows.push(...reader.push(text.slice(at, at + length)));
    at += length;
  }
  return [...rows, ...reader.end()];
}

const cellsOf = (text: string, delimiter = ",") => read(text, { delimiter }).map(({ cells }) => cells);

describe("CSV", () => {
  const table = [
    ["a", "b"],
    ["c", "d"],
  ];
  test.each([
    ["a,b\nc,d\n", table],
    ["a,b\r\nc,d", table],
    ["\n\na,b\n\nc,d\n\n", table],
    ['"a,b",c\n', [["a,b", "c"]]],
    ['"say ""hi""",""\n', [['say "hi"', ""]]],
    ['"two\nlines",x\n', [["two\nlines", "x"]]],
    ['"two\r\nlines"\r\n', [["two\r\nlines"]]],
    ['5" pipe,x\n', [['5" pipe', "x"]]],
    [
      " a , b \n,\n",
      [
        [" a ", " b "],
        ["", ""],
      ],
    ],
    ['x\n"a"', [["x"], ["a"]]],
    ["", []],
  ])("%j", (text, cells) => {
    expect(cellsOf(text)).toEqual(cells);
  });

  test("a row after a misplaced or open quote has a problem, and the next line is read", () => {
    expect(read('"a"b,c\nd,e\n', { delimiter: "," })).toEqual([
      { line: 1, text: '"a"b,c', cells: ['"a"b,c'], problem: "has text after a closing quote" },
      { line: 2, text: "d,e", cells: ["d", "e"] },
    ]);
    expect(read('a,b\nc,"d\n', { delimiter: "," })[1]).toMatchObject({
      line: 2,
      problem: "has a quote that is not closed",
    });
  });

  test("lines are counted through cells with line ends", () => {
    const rows = read('a\n"b\nb"\n\nc\n', { delimiter: "," });
    expect(rows.map(({ line }) => line)).toEqual([1, 2, 5]);
  });

  test("whatever is written is read back, in pieces of any length", () => {
    const cell = fc.string({ unit: fc.constantFrom("a", '"', ",", ";", "\n", "\r\n", " ", "日") });
    const rows = fc.array(fc.array(cell, { minLength: 2, maxLength: 3 }), { maxLength: 5 });
    const lengths = fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1, maxLength: 4 });
    fc.assert(
      fc.property(rows, lengths, fc.constantFrom(",", ";", "\t"), (rows, lengths, delimiter) => {
        const text = rows.map((row) => `${csvRow(row, delimiter)}\n`).join("");
        const found = read(text, { lengths, delimiter }).map(({ cells }) => cells);
        expect(found).toEqual(rows);
      }),
    );
  });

  test.each([
    ["=1+1", "'=1+1"],
    ["+1", "'+1"],
    ["-1", "'-1"],
    ["@SUM(1)", "'@SUM(1)"],
    ["＝1+1", "'＝1+1"],
    ["−1", "'−1"],
    ["  =1", "'  =1"],
    ["\uFEFF=1", "'\uFEFF=1"],
    ["\u00A0\u200B=1", "'\u00A0\u200B=1"],
    ["\n=1", "'\n'=1"],
    ["\t1", "'\t1"],
    ["rex;=1+1;", "rex;'=1+1;"],
    ["rex\n ＝1", "rex\n' ＝1"],
    ["rex|@x\t-1", "rex|'@x\t'-1"],
    ["a = b, -c; d", "a = b, -c; d"],
    ["", ""],
  ])("in a spreadsheet %j is %j", (text, expected) => {
    expect(spreadsheetCell(text)).toBe(expected);
  });

  test("no cell of a spreadsheet begins like a formula, whichever delimiter it guesses", () => {
    const unit = fc.constantFrom(
      "a",
      "=",
      "+",
      "-",
      "@",
      "＝",
      " ",
      "\uFEFF",
      ";",
      "|",
      "\t",
      "\n",
      "\r",
      '"',
      ",",
      "'",
    );
    fc.assert(
      fc.property(fc.string({ unit }), (text) => {
        const cells = ["", ";", "|", "\t"].flatMap((delimiter) =>
          spreadsheetCell(text)
            .split(/[\r\n]/)
            .flatMap((line) => (delimiter === "" ? [line] : line.split(delimiter))),
        );
        expect(cells.filter((cell) => /^[=+\-@＝]/.test(cell.trim()))).toEqual([]);
        expect(spreadsheetCell(text).replaceAll("'", "")).toBe(text.replaceAll("'", ""));
      }),
    );
  });

  test("a long text takes no longer than its length", () => {
    const blanks = " ".repeat(60_000);
    expect(spreadsheetCell(`${"\t".repeat(60_000)}=${blanks}`)).toHaveLength(120_003);
    expect(spreadsheetCell(`${`;${blanks.slice(0, 200)}`.repeat(300)}=`)).toEndWith("=");
  });

  test("a quote that is never closed does not fill the memory", () => {
    const endless = () => read(`"${"x\n".repeat(40_000)}`, { delimiter: ",", lengths: [10_000] });
    expect(endless).toThrow("line 1 begins a row of more than 64 KiB; is a quote missing?");
  });

  test.each([
    ["name,categoryId", ","],
    ["name,categoryId\r\na;b;c;d", ","],
    ["name;categoryId,status;id", ";"],
    ["name\tcategoryId", "\t"],
    ["name|categoryId\na,b,c,d", "|"],
    ['"a;b;c",x', ","],
    ["name", ","],
  ])("the delimiter of %j", (text, delimiter) => {
    expect(delimiterOf(text)).toBe(delimiter);
  });
});

test.each([
  ["CSV", "a\n", ","],
  ["NDJSON", "{}\n", undefined],
] as const)(
  "a row of %s has at most 64 KiB, whether it has arrived as a whole or not",
  (_, before, delimiter) => {
    for (const rest of ["\n", ""]) {
      const push = (length: number) => new RowReader(delimiter).push(before + "1".repeat(length) + rest);
      expect(push(65_536)).toHaveLength(rest === "" ? 1 : 2);
      const line = before.split("\n").length;
      expect(() => push(65_537)).toThrow(`line ${line} begins a row of more than 64 KiB`);
    }
  },
);

describe("NDJSON", () => {
  test("a row is a line; blank lines are skipped and counted", () => {
    expect(read('{"a":1}\r\n\n  \n{"b":2}')).toEqual([
      { line: 1, text: '{"a":1}' },
      { line: 4, text: '{"b":2}' },
    ]);
  });

  test("a line that is not JSON is a row, too, which is rejected later", () => {
    expect(read('{"a":1}\noops\n').map(({ text }) => text)).toEqual(['{"a":1}', "oops"]);
  });
});

test.each([
  ['\n{"a":1}', undefined],
  ["name,categoryId", ","],
  ["", ","],
] as const)("the delimiter of %j is %j", (text, delimiter) => {
  expect(delimiterOf(text)).toBe(delimiter);
});

test("NDJSON has no field for a missing value that may be absent, and null for another", () => {
  const fields = fileFieldsOf({
    id: { storedAs: "int64" },
    count: { storedAs: "integer", ifMissing: "absent" },
    at: { storedAs: "time", ifMissing: "absent" },
    keyId: { storedAs: "int64", ifMissing: "null" },
    note: { storedAs: "text", ifMissing: "null" },
  });
  const located = Object.entries(fields).map(([name, field], position) =>
    Object.assign({ name, position }, field),
  );
  const encode = ENCODERS.ndjson.encoder(located);
  expect(encode(["1", null, null, null, null])).toBe('{"id":1,"keyId":null,"note":null}\n');
  expect(encode(["1", "0", "0", "7", "x"])).toBe(
    '{"id":1,"count":0,"at":"1970-01-01T00:00:00.000Z","keyId":7,"note":"x"}\n',
  );
});
