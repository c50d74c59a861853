import { describe, expect, test } from "bun:test";
import { BARS, judge } from "./bars.ts";
import { chartOf } from "./chart.ts";
import type { ContestantId } from "./contestants.ts";
import type { Sample } from "./measure.ts";
import { nginxConfig } from "./nginx.ts";
import { Misuse, readOptions } from "./options.ts";
import { tablesOf } from "./report.ts";
import type { Results } from "./results.ts";
import { checkRound, checkRows, WrongAnswer } from "./sanity.ts";
import type { Server } from "./servers.ts";
import { median, ratioOf } from "./statistics.ts";
import { plainTable } from "./table.ts";
import { inTurn, Scores } from "./turns.ts";
import { valuesFor } from "./values.ts";
import { workOf, type WorkId } from "./work.ts";
import { patternOf } from "./wrk.ts";

const sample = (perSecond: number): Sample => ({
  perSecond,
  p50Ms: 1,
  p99Ms: 2,
  cpuMicros: 10,
  loadCpu: 0.5,
});

function resultsWith(cells: [WorkId, ContestantId, number[]][]): Results {
  return {
    format: 1,
    takenAt: "2026-11-15T00:00:00.000Z",
    machine: { cpu: "a processor", cores: 2, memoryGb: 8, kernel: "6", architecture: "arm64", load: "0 0 0" },
    versions: { Bun: "1.4.4" },
    pinned: true,
    seconds: 2,
    rounds: 3,
    animals: 100_000,
    cells: cells.map(([work, server, rates]) => ({ work, server, samples: rates.map(sample) })),
    paced: [],
    servers: [],
    growth: [],
    omitted: [{ id: "nginx", reason: "not installed" }],
  };
}

describe("statistics", () => {
  test("the median of an even number of values lies between the middle two", () => {
    expect(median([4, 1, 3, 2])).toBe(2.5);
  });

  test("a ratio is taken round by round, so that a disturbed round counts once", () => {
    expect(ratioOf([90, 45, 90], [100, 50, 200])).toEqual({ median: 0.9, min: 0.45, max: 0.9 });
  });
});

describe("turns", () => {
  test("another entrant begins each round, and everyone has a turn", () => {
    const rounds = [1, 2, 3].map((round) => inTurn(["a", "b", "c"], round).join(""));
    expect(rounds).toEqual(["bca", "cab", "abc"]);
    expect(inTurn([], 2)).toEqual([]);
  });

  test("samples are kept by work and server, in the order of the tables", () => {
    const scores = new Scores(["list", "get"], (work) => (work === "list" ? ["bare", "ours"] : ["ours"]));
    scores.add("get", "ours", sample(3));
    scores.add("list", "ours", sample(1));
    scores.add("list", "ours", sample(2));
    expect(
      scores.cells.map(({ work, server, samples }) => [
        work,
        server,
        samples.map(({ perSecond }) => perSecond),
      ]),
    ).toEqual([
      ["list", "bare", []],
      ["list", "ours", [1, 2]],
      ["get", "ours", [3]],
    ]);
  });
});

describe("load", () => {
  test("a pattern keeps its proportions and spreads the rare ones evenly", () => {
    const pattern = patternOf([90, 9, 1]);
    expect(pattern.length).toBe(100);
    expect([0, 1, 2].map((part) => pattern.filter((at) => at === part).length)).toEqual([90, 9, 1]);
    const gets = pattern.flatMap((part, at) => (part === 1 ? [at] : []));
    expect(Math.min(...gets.slice(1).map((at, i) => at - (gets[i] ?? 0)))).toBeGreaterThanOrEqual(8);
  });

  test("cursors are all different, reach through the whole table, and begin full pages only", () => {
    const { plain, opaque, bodies } = valuesFor(1_000_000);
    expect(new Set(plain).size).toBe(plain.length);
    expect(new Set(opaque).size).toBe(opaque.length);
    expect(Math.max(...plain.map(Number))).toBeLessThanOrEqual(1_000_000 - 21);
    expect(Math.max(...plain.map(Number))).toBeGreaterThan(990_000);
    expect(new Set(bodies.map(({ length }) => length)).size).toBe(1);
  });
});

describe("a broken server never looks fast", () => {
  const server = { id: "ours" } as Server;
  const figures = {
    requests: 1_000,
    micros: 1e6,
    bytes: 1_000_000,
    p50: 1,
    p99: 2,
    max: 3,
    refused: 0,
    failed: 0,
    loadCpu: 0.5,
  };

  test("a round of right answers passes", () => {
    expect(() => checkRound(server, workOf("list"), figures, 1_000)).not.toThrow();
    expect(() => checkRound(server, workOf("429"), { ...figures, refused: 1_000 }, 1_000)).not.toThrow();
  });

  test.each([
    ["one refused request among a thousand", "list", { refused: 1 }],
    ["a broken connection", "list", { failed: 1 }],
    ["answers that are too short", "list", { bytes: 500_000 }],
    ["no answer at all", "list", { requests: 0 }],
    ["requests let in that should be refused", "429", { refused: 900 }],
  ] as const)("%s stops the run", (_what, work, fault) => {
    expect(() => checkRound(server, workOf(work), { ...figures, ...fault }, 1_000)).toThrow(WrongAnswer);
  });

  test("creates that were answered but are no rows stop the run", () => {
    expect(() => checkRows(server, workOf("create-32"), { rows: 1_010, requests: 1_000 })).not.toThrow();
    expect(() => checkRows(server, workOf("create-32"), { rows: 990, requests: 1_000 })).toThrow(WrongAnswer);
    expect(() => checkRows(server, workOf("mix"), { rows: 10, requests: 1_000 })).not.toThrow();
    expect(() => checkRows(server, workOf("mix"), { rows: 5, requests: 1_000 })).toThrow(WrongAnswer);
  });
});

describe("bars", () => {
  const outcomeOf = (results: Results, what: string) =>
    judge(results).find(({ bar }) => bar.what.startsWith(what));

  test("a bar is reached, missed, or not measured", () => {
    const results = resultsWith([
      ["list", "bare", [100, 100, 100]],
      ["list", "ours", [84, 86, 90]],
      ["get", "bare", [100, 100, 100]],
      ["get", "ours", [84, 84, 90]],
    ]);
    expect(outcomeOf(results, "list, first page")?.reached).toBe(true);
    expect(outcomeOf(results, "get")?.reached).toBe(false);
    expect(outcomeOf(results, "429")?.reached).toBeUndefined();
  });

  test("the best peer is the one to beat", () => {
    const results = resultsWith([
      ["list", "ours", [100]],
      ["list", "express", [10]],
      ["list", "fastify", [50]],
    ]);
    const outcome = outcomeOf(results, "list, against the best Node peer");
    expect(outcome?.measured?.median).toBe(2);
    expect(outcome?.reached).toBe(false);
  });

  test("against the best peer nothing is measured while one of them is missing", () => {
    const results = resultsWith([
      ["list", "ours", [100]],
      ["list", "express", [10]],
    ]);
    expect(outcomeOf(results, "list, against the best Node peer")?.reached).toBeUndefined();
  });

  test("every bar has one bound", () => {
    for (const { atLeast, atMost } of BARS)
      expect((atLeast === undefined) !== (atMost === undefined)).toBe(true);
  });
});

describe("report", () => {
  const results = resultsWith([
    ["list", "bare", [100, 100, 100]],
    ["list", "ours", [86, 86, 90]],
  ]);

  test("names what was left out, and why", () => {
    expect(tablesOf(results).map(plainTable).join("")).toContain("not installed");
  });

  test("marks a figure at which the load generator was at its limit", () => {
    const bound = { ...sample(100), loadCpu: 1 };
    const limited = { ...results, cells: [{ work: "list", server: "bare", samples: [bound] } as const] };
    expect(tablesOf(limited).map(plainTable).join("")).toContain("≥ 100");
  });

  test("the chart is well-formed and shows the ratio", () => {
    const chart = chartOf(results);
    expect(chart).toContain(">0.86<");
    expect(chart.match(/<(?:svg|title|style|text|rect|line|path)\b/g)?.length).toBeGreaterThan(8);
    expect(chart).not.toContain("NaN");
  });
});

describe("options", () => {
  test("by default everything is measured", () => {
    const options = readOptions([]);
    if (options === "help") throw new Error("help was not asked for");
    expect(options.works).toContain("create-256");
    expect(options.sections).toEqual(["paced", "growth", "start", "limiter"]);
    expect(options.peers.length).toBe(5);
  });

  test.each(["--only lists", "--seconds 0", "--rounds five", "--peers koa", "--fast"])(
    "%s is refused",
    (line) => {
      expect(() => readOptions(line.split(" "))).toThrow(Misuse);
    },
  );
});

test("nginx is never given a variable to expand", () => {
  const reply = { status: 200, headers: {}, body: "$host" };
  expect(() => nginxConfig("", { list: { list: reply } }, { list: 1 })).toThrow("dollar");
});
