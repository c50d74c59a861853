import { describe, expect, test } from "bun:test";
import { UsageError } from "../../trials/harness/command-line.ts";
import { plainTable } from "../../trials/harness/table.ts";
import { chartOf } from "../../bench/chart.ts";
import { checkRound, checkRows, measureRounds, rotate, WrongResponse } from "../../bench/rounds.ts";
import { planOf, readOptions } from "../../bench/plan.ts";
import { judge, type Results, type Sample, TARGETS } from "../../bench/targets.ts";
import { detailTables, summaryTable } from "../../bench/tables.ts";
import { type CandidateId, requestValues, type WorkloadId, workloadOf } from "../../bench/workloads.ts";

const sample = (perSecond: number): Sample => ({
  perSecond,
  p50Ms: 1,
  p99Ms: 2,
  cpuMicros: 10,
  loadCpu: 0.5,
});

function resultsWith(cells: [WorkloadId, CandidateId, number[]][]): Results {
  return {
    format: 3,
    takenAt: "2026-11-15T00:00:00.000Z",
    machine: { cpu: "a processor", cores: 2, memoryGb: 8, kernel: "6", architecture: "arm64", load: "0 0 0" },
    versions: { Bun: "1.4.4" },
    pinned: true,
    seconds: 2,
    rounds: 3,
    otherRounds: 3,
    pets: 100_000,
    cells: cells.map(([workload, server, rates]) => ({ workload, server, samples: rates.map(sample) })),
    paced: [],
    servers: [],
    growth: [],
  };
}

describe("rounds", () => {
  test("each round begins with another server, and every server is measured", () => {
    const rounds = [1, 2, 3].map((round) => rotate(["a", "b", "c"], round).join(""));
    expect(rounds).toEqual(["bca", "cab", "abc"]);
    expect(rotate([], 2)).toEqual([]);
  });

  test("samples are collected by workload and server, in the order of the tables", async () => {
    const announced: string[] = [];
    const cells = await measureRounds({
      loads: [
        { workload: "list", servers: ["a", "b"], rounds: 2 },
        { workload: "get", servers: ["b"], rounds: 1 },
      ],
      start: async () => [{ name: "a" }, { name: "b" }],
      announce: (what) => void announced.push(what),
      measure: async ({ name }, { id }) => sample(name === "b" ? 2 : id === "list" ? 1 : Number.NaN),
    });
    const rates = cells.map(({ workload, server, samples }) => {
      return [workload, server.name, samples.map(({ perSecond }) => perSecond)];
    });
    expect(rates).toEqual([
      ["list", "a", [1, 1]],
      ["list", "b", [2, 2]],
      ["get", "b", [2]],
    ]);
    expect(announced).toEqual([
      "round 1 of 2 · list, first page · b",
      "round 1 of 2 · list, first page · a",
      "round 1 of 1 · get, random pets · b",
      "round 2 of 2 · list, first page · a",
      "round 2 of 2 · list, first page · b",
    ]);
  });
});

test("cursors are all different, cover the whole table, and begin full pages only", () => {
  const { plainCursors, opaqueCursors, bodies } = requestValues(1_000_000);
  expect(new Set(plainCursors).size).toBe(plainCursors.length);
  expect(new Set(opaqueCursors).size).toBe(opaqueCursors.length);
  expect(Math.max(...plainCursors.map(Number))).toBeLessThanOrEqual(1_000_000 - 21);
  expect(Math.max(...plainCursors.map(Number))).toBeGreaterThan(990_000);
  expect(new Set(bodies.map(({ length }) => length)).size).toBe(1);
});

describe("a broken server never looks fast", () => {
  const figures = { requests: 1_000, bytes: 1_000_000, rejected: 0, failed: 0 };

  test("a round of correct responses passes", () => {
    expect(() => checkRound("ours", workloadOf("list"), figures, 1_000)).not.toThrow();
    expect(() => checkRound("ours", workloadOf("429"), { ...figures, rejected: 1_000 }, 1_000)).not.toThrow();
  });

  test.each([
    ["one rejected request among a thousand", "list", { rejected: 1 }],
    ["a broken connection", "list", { failed: 1 }],
    ["responses that are too short", "list", { bytes: 500_000 }],
    ["no response at all", "list", { requests: 0 }],
    ["requests that should be rejected and are not", "429", { rejected: 900 }],
  ] as const)("%s stops the run", (_what, workload, fault) => {
    expect(() => checkRound("ours", workloadOf(workload), { ...figures, ...fault }, 1_000)).toThrow(
      WrongResponse,
    );
  });

  test("acknowledged creates that are not in the database stop the run", () => {
    const check = (id: WorkloadId, rows: number) => () =>
      checkRows("ours", workloadOf(id), { rows, requests: 1_000, connections: 32 });
    expect(check("create-32", 1_010)).not.toThrow();
    expect(check("create-32", 990)).toThrow(WrongResponse);
    expect(check("mix", 10)).not.toThrow();
    expect(check("mix", 5)).toThrow(WrongResponse);
  });
});

describe("targets", () => {
  const outcomeOf = (results: Results, what: string) =>
    judge(results).find(({ target }) => target.what.startsWith(what));

  test("a target is reached, missed, or not measured", () => {
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

  test("the fastest peer counts", () => {
    const results = resultsWith([
      ["list", "ours", [100]],
      ["list", "express", [10]],
      ["list", "fastify", [50]],
    ]);
    const outcome = outcomeOf(results, "list, against the best Node peer");
    expect(outcome?.measured?.median).toBe(2);
    expect(outcome?.reached).toBe(false);
  });

  test("against the best peer nothing is measured while that one is missing", () => {
    const results = resultsWith([
      ["list", "ours", [100]],
      ["list", "express", [10]],
    ]);
    expect(outcomeOf(results, "list, against the best Node peer")?.reached).toBeUndefined();
  });

  test("every target has one bound", () => {
    for (const { atLeast, atMost } of TARGETS)
      expect((atLeast === undefined) !== (atMost === undefined)).toBe(true);
  });
});

describe("report", () => {
  const results = resultsWith([
    ["list", "bare", [100, 100, 100]],
    ["list", "ours", [86, 86, 90]],
  ]);

  test("marks a figure that the load generator limited", () => {
    const bound = { ...sample(100), loadCpu: 1 };
    const limited = { ...results, cells: [{ workload: "list", server: "bare", samples: [bound] } as const] };
    expect(detailTables(limited).map(plainTable).join("")).toContain("≥ 100");
  });

  test("the chart is well-formed and shows the ratio", () => {
    const chart = chartOf(results);
    expect(chart).toContain(">0.86<");
    expect(chart.match(/<(?:svg|title|style|text|rect|line|path)\b/g)?.length).toBeGreaterThan(8);
    expect(chart).not.toContain("NaN");
  });
});

describe("options", () => {
  const minutesOf = (...args: string[]) =>
    planOf(readOptions(args)).steps.reduce((sum, { runs, seconds }) => sum + runs * seconds, 0) / 60;

  test("by default five rounds decide for list, get, create and mix, against the best peers", () => {
    const { loads } = planOf(readOptions([]));
    const decisive = loads.filter(({ rounds }) => rounds === 5);
    expect(decisive.map(({ workload }) => workload)).toEqual(["list", "get", "create-32", "mix"]);
    for (const { servers } of decisive) expect(servers).toEqual(["bare", "ours", "fastify", "hono"]);
  });

  test("a default run takes at most 15 minutes, a quick one 4, and a full one less than 46", () => {
    expect(minutesOf("--check")).toBeLessThan(15);
    expect(minutesOf("--quick")).toBeLessThan(4);
    expect(minutesOf("--full")).toBeLessThan(46);
  });

  test("a full run measures everything", () => {
    const { workloads, sections, peers } = readOptions(["--full"]);
    expect(workloads).toContain("create-256");
    expect(sections).toEqual(["paced", "growth", "start", "limiter"]);
    expect(peers.length).toBe(4);
  });

  test("a section that compares servers has a workload", () => {
    const workloadsOf = (only: string) => readOptions(["--only", only]).workloads;
    expect(["start", "paced", "start,get", "growth"].map(workloadsOf)).toEqual([
      ["list"],
      ["list", "get", "mix"],
      ["get"],
      [],
    ]);
  });

  test.each(["--only lists", "--seconds 0", "--rounds five", "--peers koa", "--fast"])(
    "%s is rejected",
    (line) => {
      expect(() => readOptions(line.split(" "))).toThrow(UsageError);
    },
  );
});

test("the summary compares with the bare route, and lacks what was not measured", () => {
  const { header, rows } = summaryTable(
    resultsWith([
      ["list", "bare", [100, 200, 300]],
      ["list", "ours", [150, 300, 450]],
      ["list", "express", [10, 20, 30]],
      ["get", "ours", [100, 100, 100]],
    ]),
  );
  expect(header).toEqual([
    "workload",
    "requests/s",
    "p99 ms",
    "Petstore",
    "Express",
    "Fastify",
    "Hono",
    "Elysia",
  ]);
  expect(rows).toEqual([
    ["list, first page", "300", "2.00", "1.50", "0.10", "–", "–", "–"],
    ["get, random pets", "100", "2.00", "–", "–", "–", "–", "–"],
  ]);
});
