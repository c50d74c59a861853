import { describe, expect, test } from "bun:test";
import { describeProblems } from "../../src/api/errors.ts";
import { Invalid } from "../../src/api/schema.ts";
import { importedPetSchema } from "../../src/archive/imported-pets.ts";
import type { SourceRow } from "../../src/archive/row-reader.ts";
import { csvRowParser, jsonRowParser, type RowParser } from "../../src/archive/row-parser.ts";

const WITH_IDS = importedPetSchema({ keepsIds: true });
const WITHOUT_IDS = importedPetSchema({ keepsIds: false });

const json = (text: string, schema = WITHOUT_IDS): unknown =>
  resultOf(jsonRowParser(schema), { line: 1, text });

const csv = (header: string, row: string, schema = WITHOUT_IDS): unknown =>
  resultOf(csvRowParser(schema, header.split(",")), { line: 2, text: row, cells: row.split(",") });

/** The row, or its problems as an import reports them. */
function resultOf({ parse, nameOf }: RowParser, row: SourceRow): unknown {
  const result = parse(row);
  if (!(result instanceof Invalid)) return result;
  return describeProblems(result.problems, ([field]) => (field ? nameOf(String(field)) : "the row"));
}

const INTEGER = "must be an integer from -2^63 to 2^63 - 1";

describe("pets", () => {
  test.each([
    ['{"name":"Rex","categoryId":9007199254740993}', { name: "Rex", categoryId: 9007199254740993n }],
    ['{"name":"Rex","categoryId":1e3,"x":{}}', { name: "Rex", categoryId: 1000n }],
    [
      '{"id":"x","name":"Rex","categoryId":1,"status":"sold"}',
      { name: "Rex", categoryId: 1n, status: "sold" },
    ],
    ['{"name":"Rex","categoryId":1,"status":null}', { name: "Rex", categoryId: 1n }],
  ])("%s", (text, pet) => {
    expect(json(text)).toEqual(pet);
  });

  test.each([
    ["oops", "the row is not valid JSON"],
    ["[1]", "the row must be a JSON object"],
    ["7", "the row must be a JSON object"],
    ['{"name":"Rex","name":"Mia","categoryId":1}', "name must be given only once"],
    ['{"name":"Rex","categoryId":"1"}', `categoryId ${INTEGER}`],
    ['{"name":"Rex","categoryId":9223372036854775808}', `categoryId ${INTEGER}`],
    ['{"name":5,"categoryId":1.5}', /^name must be a string of 1 to 1,024 .*; categoryId must be an integer/],
    ['{"name":"Rex","categoryId":null}', `categoryId ${INTEGER}`],
    ['{"name":"Rex","categoryId":1,"status":"x"}', 'status must be one of "available", "pending" or "sold"'],
  ])("%s is rejected", (text, problem) => {
    expect(json(text)).toMatch(problem);
  });

  test("an identifier that is kept is from 1 to 2^62", () => {
    const pet = (id: string) => json(`{"id":${id},"name":"Rex","categoryId":1}`, WITH_IDS);
    expect(pet("4611686018427387904")).toMatchObject({ id: 2n ** 62n });
    expect(pet("0")).toBe("id must be from 1 to 2^62");
    expect(pet("4611686018427387905")).toBe("id must be from 1 to 2^62");
    expect(json('{"name":"Rex","categoryId":1}', WITH_IDS)).toBe(`id is required and ${INTEGER}`);
  });
});

describe("CSV columns", () => {
  test.each([
    ["name,categoryId,status", "Rex,7,sold", { name: "Rex", categoryId: 7n, status: "sold" }],
    ["Status,Category ID,NAME", ",-7,Rex", { name: "Rex", categoryId: -7n }],
    ["category,name,colour", "7,Rex,red", { name: "Rex", categoryId: 7n }],
  ])("the header %s", (header, row, pet) => {
    expect(csv(header, row)).toEqual(pet);
  });

  test.each([
    ["Rex,07,", `categoryId ${INTEGER}`],
    ["Rex,,", `categoryId ${INTEGER}`],
    ["Rex, 7,", `categoryId ${INTEGER}`],
    ["Rex,7", "the row has 2 columns instead of 3"],
    ["Rex,7,gone", 'status must be one of "available", "pending" or "sold"'],
  ])("the row %s is rejected", (row, problem) => {
    expect(csv("name,categoryId,status", row)).toBe(problem);
  });

  test("a text that is no row is rejected for what it is, however many columns it has", () => {
    const problem = "has a quote that is not closed";
    const row = { line: 2, text: 'Rex,"7', cells: ["Rex", "7"], problem };
    expect(resultOf(csvRowParser(WITHOUT_IDS, ["name", "categoryId"]), row)).toBe(`the row ${problem}`);
  });

  test("a problem names the column of the file", () => {
    expect(csv("name,Category ID", "Rex,x")).toBe(`Category ID ${INTEGER}`);
  });

  test.each([
    ["name,status", "line 1 must be a header that names the columns name, categoryId; it lacks categoryId"],
    [
      "Rex,7,sold",
      "line 1 must be a header that names the columns name, categoryId; it lacks name, categoryId",
    ],
    ["name,Name,category", "line 1 names two columns for name; rename one of them"],
  ])("the first line %s is no header", (line, message) => {
    expect(() => csv(line, line)).toThrow(message);
  });
});
