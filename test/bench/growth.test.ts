import { describe, expect, test } from "bun:test";
import { combinations } from "../../trials/harness/combinations.ts";
import { COMMAND_RUNS } from "../../bench/growth/commands.ts";
import { rowsOf } from "../../bench/growth/rows.ts";
import { growthCases } from "../../bench/growth/operations.ts";
import {
  type Cost,
  growthBars,
  growthTable,
  type GrowthResults,
  type GrowthRow,
} from "../../bench/growth/tables.ts";
import { COMMANDS } from "../../src/cli/command-table.ts";
import { ADMIN_OPERATIONS, type AdminOperation } from "../../src/operator/operations.ts";
import { PET_FILTERS } from "../../src/domain/pets-and-orders.ts";
import { OPERATIONS } from "../../src/petstore/operations.ts";
import { missedBars } from "../../trials/harness/table.ts";

const CASES = growthCases({
  rows: rowsOf(1),
  keys: { usual: "usual", other: "other" },
  tokens: ["token"],
  now: 0,
});

describe("the growth benchmark measures everything", () => {
  const measured = (side: string) =>
    new Set(CASES.filter((each) => each.side === side).map(({ operation }) => operation));

  test("every operation of clients and of operators has a request", () => {
    expect([...measured("client")]).toEqual(Object.keys(OPERATIONS));
    expect([...measured("operator")]).toEqual(Object.keys(ADMIN_OPERATIONS));
  });

  test("every filter of pets is combined with every other one, and every parameter of operators is given", () => {
    const names = CASES.filter(({ side, operation }) => side === "client" && operation === "listPets").map(
      ({ name }) => name.replace(/=[^&]*/g, ""),
    );
    const filters = Object.keys(PET_FILTERS);
    for (const [set] of combinations(
      Object.fromEntries(filters.map((filter) => [filter, [true]])),
    ).entries()) {
      const given = filters.filter((_, i) => (set >> i) % 2 === 1);
      expect(names).toContain(given.join("&"));
    }
    for (const [operation, { query = {} }] of Object.entries<AdminOperation>(ADMIN_OPERATIONS)) {
      const paths = CASES.filter((each) => each.side === "operator" && each.operation === operation);
      const given = paths.flatMap(({ request }) =>
        Array.from(new URL(request(1).path, "http://localhost").searchParams.keys()),
      );
      expect({ operation, given: [...new Set(given)].toSorted() }).toEqual({
        operation,
        given: Object.keys(query).toSorted(),
      });
    }
  });

  test("every command is run, or a reason says why not", () => {
    expect(Object.keys(COMMAND_RUNS).toSorted()).toEqual(COMMANDS.map(({ name }) => name).toSorted());
  });

  test("no two requests of an operation have one name", () => {
    const names = CASES.map(({ side, operation, name }) => `${side} ${operation} ${name}`);
    expect(names.filter((name, i) => names.indexOf(name) !== i)).toEqual([]);
  });
});

describe("a row is within its bounds, or is named", () => {
  const cost = (cpuMs: number, other: Partial<Cost> = {}): Cost => {
    return { cpuMs, blocks: 5, bytes: 100, waitMs: 2, ...other };
  };
  const resultsOf = (side: GrowthRow["side"], last: Cost): GrowthResults => ({
    database: "sqlite",
    scales: [1, 10],
    controls: new Map([
      [1, 2],
      [10, 2],
    ]),
    rows: [
      {
        side,
        operation: "listPets",
        name: "status=sold",
        costs: new Map([
          [1, cost(3)],
          [10, last],
        ]),
      },
    ],
  });
  const missed = (...given: Parameters<typeof resultsOf>) => missedBars(growthBars(resultsOf(...given)));

  test("a request of a client may take twice as long, and one of an operator as many times as there are rows", () => {
    expect(missed("client", cost(6))).toEqual([]);
    expect(missed("client", cost(7))).toEqual([
      "10×, client, listPets (status=sold), CPU ms: 7.00, at most 6.5",
    ]);
    expect(missed("operator", cost(40))).toEqual([]);
    expect(missed("operator", cost(60))).toHaveLength(1);
  });

  test("another client may wait 10 ms longer, whoever is the cause, and a failure is no figure", () => {
    expect(missed("operator", cost(3, { waitMs: 12 }))).toEqual([]);
    expect(missed("operator", cost(3, { waitMs: 13 }))).toHaveLength(1);
    expect(missed("command", cost(3, { waitMs: 30, controlMs: 20 }))).toEqual([]);
    expect(missed("command", cost(3, { waitMs: 31, controlMs: 20 }))).toHaveLength(1);
    const failed = cost(Number.NaN, { waitMs: Number.NaN, failure: "503" });
    expect(missed("client", failed)).toEqual([expect.stringContaining("503")]);
  });

  test("petstore keys list takes at most 8 s and 200 MB, and petstore usage 5 s, whatever they took with less", () => {
    const missedBy = (operation: string, last: Cost) => {
      const costs = new Map([
        [1, cost(7_000)],
        [10, last],
      ] as const);
      const row = { side: "command", operation, name: "", costs } as const;
      return missedBars(growthBars({ ...resultsOf("command", last), rows: [row] }));
    };
    expect(missedBy("keys list", cost(8_000, { memoryMb: 200 }))).toEqual([]);
    expect(missedBy("keys list", cost(8_001, { memoryMb: 201 }))).toEqual([
      "10×, command, keys list, CPU ms: 8,001, at most 8000",
      "10×, command, keys list, memory MB: 201, at most 200",
    ]);
    expect(missedBy("usage", cost(5_001))).toContain("10×, command, usage, CPU ms: 5,001, at most 5000");
    expect(missedBy("export", cost(50_000, { memoryMb: 240 }))).toEqual([]);
  });

  test("the table has the request that takes longest, and the figures of each scale", () => {
    const { header, rows } = growthTable(resultsOf("client", cost(6, { blocks: 9 })), "client");
    expect(header).toEqual([
      "operation",
      "most CPU with",
      "CPU ms 1×",
      "CPU ms 10×",
      "pages 1×",
      "pages 10×",
      "bytes",
      "wait ms 1×",
      "wait ms 10×",
    ]);
    expect(rows).toEqual([["listPets", "status=sold", "3.00", "6.00", "5", "9", "100", "2.00", "2.00"]]);
  });
});
