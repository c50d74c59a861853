import { describe, expect, test } from "bun:test";
import { parseFlags, UsageError } from "../../trials/harness/command-line.ts";
import { chartOf } from "../../bench/chart.ts";
import { checkRound, checkRows, measureRounds, WrongResponse } from "../../bench/rounds.ts";
import { FLAGS, planOf } from "../../bench/plan.ts";
import { judge, type Results, type Sample } from "../../bench/targets.ts";
import { detailTables, summaryTable } from "../../bench/tables.ts";
import { type CandidateId, type WorkloadId, workloadOf } from "../../bench/workloads.ts";

const SAMPLE = { p50Ms: 1, p99Ms: 2, cpuMicros: 10, loadCpu: 0.5 };
const sample = (perSecond: number): Sample => ({ perSecond, ...SAMPLE });

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

test("each round begins with another server, and samples are collected by workload and server", async () => {
  const announced: string[] = [];
  const cells = await measureRounds({
    loads: [
      { workload: "list", servers: ["a", "b"], rounds: 2 },
      { workload: "get", servers: ["b"], rounds: 1 },
    ],
    start: async () => [{ name: "a" }, { name: "b" }],
    announce: (what) => void announced.push(what),
    measure: async ({ name }) => sample(name === "b" ? 2 : 1),
  });
  const rates = cells.map(({ server, samples }) => [
    server.name,
    samples.map(({ perSecond }) => perSecond).join(),
  ]);
  expect(rates).toEqual([
    ["a", "1,1"],
    ["b", "2,2"],
    ["b", "2"],
  ]);
  expect(announced.map((text) => text.replace(/,.*·/, ""))).toEqual([
    "round 1 of 2 · list b",
    "round 1 of 2 · list a",
    "round 1 of 1 · get b",
    "round 2 of 2 · list a",
    "round 2 of 2 · list b",
  ]);
});

describe("a broken server never looks fast", () => {
  const figures = { requests: 1_000, bytes: 1_000_000, rejected: 0, failed: 0 };

  test.each([
    ["correct responses", "list", {}, true],
    ["rejections that are expected", "429", { rejected: 1_000 }, true],
    ["one rejected request among a thousand", "list", { rejected: 1 }, false],
    ["a broken connection", "list", { failed: 1 }, false],
    ["responses that are too short", "list", { bytes: 500_000 }, false],
    ["no response at all", "list", { requests: 0 }, false],
    ["requests that should be rejected and are not", "429", { rejected: 900 }, false],
  ] as const)("a round with %s (%s)", (_what, workload, fault, passes) => {
    const check = () => checkRound("ours", workloadOf(workload), { ...figures, ...fault }, 1_000);
    if (passes) expect(check).not.toThrow();
    else expect(check).toThrow(WrongResponse);
  });

  test("acknowledged creates that are not in the database stop the run", () => {
    const check = (id: WorkloadId, rows: number) => () =>
      checkRows("ours", workloadOf(id), { rows, requests: 1_000, connections: 32 });
    expect(check("create-32", 1_010)).not.toThrow();
    expect(check("create-32", 990)).toThrow(WrongResponse);
    expect(check("mix", 5)).toThrow(WrongResponse);
  });
});

test("a target is reached, missed, or not measured; the best peer counts, if it was measured", () => {
  const results = resultsWith([
    ["list", "bare", [100, 100, 100]],
    ["list", "ours", [84, 86, 90]],
    ["list", "fastify", [43, 43, 43]],
    ["create-32", "ours", [60, 60, 60]],
    ["create-32", "fastify", [10, 10, 10]],
    ["create-32", "hono", [12, 12, 12]],
    ["get", "bare", [100, 100, 100]],
    ["get", "ours", [84, 84, 90]],
  ]);
  const outcomeOf = (what: string) => judge(results).find(({ target }) => target.what.startsWith(what));
  expect(outcomeOf("list, first page")?.reached).toBe(true);
  expect(outcomeOf("get")?.reached).toBe(false);
  expect(outcomeOf("429")?.reached).toBeUndefined();
  expect(outcomeOf("list, against fastify")?.measured?.median).toBe(2);
  expect(outcomeOf("list, against hono")?.reached).toBeUndefined();
  expect(outcomeOf("create at 32 connections, against fastify and hono")?.measured?.median).toBe(5);
  expect(summaryTable(results).rows).toEqual([
    ["list, first page", "86", "2.00", "0.86", "0.43", "–"],
    ["create, 32 connections", "60", "2.00", "–", "–", "–"],
    ["get, random pets", "84", "2.00", "0.84", "–", "–"],
  ]);
  expect(chartOf(results)).toContain(">0.86<");
  expect(chartOf(results)).not.toContain("NaN");
});

test("one server on PostgreSQL is judged by its rate or by its CPU time, whichever is better", () => {
  const cell = (workload: WorkloadId, servers: number, perSecond: number, server: number) => {
    return { workload, servers, samples: [{ perSecond, server, postgres: 9, balancer: 0 }] };
  };
  const shared = [
    cell("list", 0, 100, 10),
    cell("list", 1, 20, 19),
    cell("list", 4, 10, 90),
    cell("mix", 0, 100, 10),
    cell("mix", 1, 36, 50),
    cell("get", 0, 100, 10),
    cell("get", 1, 40, 25),
  ];
  const results = { ...resultsWith([]), shared };
  const outcomes = judge(results).filter(({ target }) => target.what.includes("on PostgreSQL"));
  expect(outcomes.map(({ reached }) => reached)).toEqual([true, false, undefined, true]);
  const [table] = detailTables(results);
  expect(table?.rows[2]).toEqual(["list, first page", "4", "10", "0.10", "0.11", "90.0", "9.00"]);
});

test("by default the workloads with a target are measured, --full measures all, and paced needs a workload", () => {
  const workloadsOf = (...args: string[]) =>
    planOf(parseFlags(args, FLAGS)).loads.map(({ workload }) => workload);
  const [usual, all] = [workloadsOf(), workloadsOf("--full")];
  expect(usual).toEqual(["list", "get", "create-32", "mix", "deep", "401", "401-unknown", "429"]);
  expect(all).toEqual(expect.arrayContaining([...usual, "filtered", "get-one", "create-1", "create-256"]));
  expect(workloadsOf("--only", "paced")).toEqual(["list", "get", "mix"]);
  expect(workloadsOf("--only", "shared")).toEqual([]);
});

test.each(["--only lists", "--seconds 0", "--rounds five", "--peers express", "--fast"])(
  "%s is rejected",
  (line) => {
    expect(() => parseFlags(line.split(" "), FLAGS)).toThrow(UsageError);
  },
);

describe("slow disks", () => {
  type Load = readonly [load: "list" | "create", connections: number, writers: number];
  const cell = ([load, connections, writers]: Load, delayMs: number, perSecond: number, ms = 1) => {
    const samples = [{ perSecond, p50Ms: ms, p99Ms: 2 * ms }];
    return { release: "this", load, connections, writers, delayMs, samples } as const;
  };
  const cells = [0, 5].flatMap((delayMs) => [
    cell(["list", 1, 0], delayMs, 5_000),
    cell(["list", 1, 4], delayMs, 4_000, delayMs === 5 ? 1.4 : 1.2),
    cell(["list", 32, 0], delayMs, 10_000),
    cell(["list", 32, 4], delayMs, delayMs === 5 ? 8_000 : 9_900),
    cell(["create", 1, 0], delayMs, 100),
    cell(["create", 32, 0], delayMs, 3_200),
  ]);

  test("are judged by the worst ratio", () => {
    const judged = judge({ ...resultsWith([]), disk: { cells } }).filter(({ measured }) => measured);
    expect(judged.map(({ measured, reached }) => [measured?.median, reached])).toEqual([
      [1.4, false],
      [1.4, false],
      [0.8, false],
      // 9 ms for each of 32: a create takes 1.5 × (5 + 1) ms.
      [0.9, true],
    ]);
  });

  test("have a table, or the reason why there is none", () => {
    const tableFor = (disk: Results["disk"]) =>
      detailTables({ ...resultsWith([]), ...(disk && { disk }) }).at(-1);
    expect(tableFor({ cells })?.rows[1]).toEqual([
      "list, 1 connection",
      "4",
      "1.20 / 2.40 ms",
      "–",
      "1.40 / 2.80 ms",
      "–",
    ]);
    expect(tableFor({ skipped: "no compiler", cells: [] })?.rows).toEqual([["skipped", "no compiler"]]);
  });
});
