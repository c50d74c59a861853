import { expect, test } from "bun:test";
import type { Overview, ServerList } from "../../src/operator/operations.ts";
import { forgottenOf, partValue, shownPartOf, rangeOf, usualRange } from "../../src/console/live-range.ts";

const NOW_S = Date.UTC(2026, 10, 18, 12) / 1_000;
const shown = (value: string | null) => rangeOf(value, NOW_S * 1_000);

test("the range of a URL is one of four, by default an hour", () => {
  expect(["15m", "24h", null, "toString", "2h"].map((value) => shown(value).range)).toEqual([
    "15m",
    "24h",
    "1h",
    "1h",
    "1h",
  ]);
});

test("without a range, a server that is younger than an hour has the shortest", () => {
  expect([0, 3_599_999, 3_600_000, Number.NaN].map(usualRange)).toEqual(["15m", "15m", "1h", "1h"]);
  expect(rangeOf("7d", NOW_S * 1_000, "15m")).toMatchObject({ range: "15m", text: "15 min" });
});

test("a part is named by its times on the clock, and its parameter is what the URL has", () => {
  const [from, until] = [NOW_S - 600, NOW_S - 300];
  const clock = (time: number) => new Date(time * 1_000).toTimeString().slice(0, 8);
  expect(shown(partValue(from, until))).toEqual({
    range: "15m",
    part: { from, until },
    value: `${from}-${until}`,
    text: `${clock(from)} – ${clock(until)}`,
  });
  expect(shown("24h")).toEqual({ range: "24h", value: "24h", text: "24 h" });
  // The shortest range has no time that is as old as it is.
  expect([899, 900].map((seconds) => shown(partValue(NOW_S - seconds, NOW_S)).range)).toEqual(["15m", "1h"]);
  expect(shown(partValue(from, from)).part).toBeUndefined();
});

test("two times are a part of the shortest range that has them", () => {
  const ago = (from: number, until: number) => shown(`${NOW_S - from}-${NOW_S - until}`);
  expect(ago(600, 300)).toMatchObject({ range: "15m", part: { from: NOW_S - 600, until: NOW_S - 300 } });
  expect(ago(1_200, 0).range).toBe("1h");
  expect(ago(20_000, 10_000).range).toBe("6h");
  expect(ago(80_000, 10_000).range).toBe("24h");
  // What is older than a day, or ends before it begins, is none.
  expect([ago(90_000, 80_000).part, ago(300, 600).part, shown("7-").part]).toEqual([
    undefined,
    undefined,
    undefined,
  ]);
});

const VALUES = [1, 2, null, 4];
const NONE = [0, 0, null, 0];
const REQUESTS = {
  success: VALUES,
  clientError: NONE,
  limited: [5, 6, null, 0],
  banned: NONE,
  serverError: NONE,
};
const TOTALS = {
  requests: 18,
  success: 7,
  clientError: 0,
  limited: 11,
  banned: 0,
  serverError: 0,
  p50: 1,
  p99: 9,
};
const DATA: Overview = {
  range: "15m",
  step: 5,
  times: [NOW_S - 15, NOW_S - 10, NOW_S - 5, NOW_S],
  requests: REQUESTS,
  p50: VALUES,
  p99: [9, 3, null, 5],
  connections: VALUES,
  totals: TOTALS,
  before: TOTALS,
  missing: [],
  bannedKeys: 0,
  deprecatedKeys: 0,
  topKeys: [],
};

test("a part has its own series and totals, and the greatest percentile of its steps", () => {
  expect(shownPartOf(DATA, shown("15m"))).toBe(DATA);
  const part = shownPartOf(DATA, shown(partValue(NOW_S - 10, NOW_S - 5)));
  expect(part).toEqual({
    ...DATA,
    times: [NOW_S - 10, NOW_S - 5],
    requests: {
      ...REQUESTS,
      success: [2, null],
      clientError: [0, null],
      limited: [6, null],
      banned: [0, null],
      serverError: [0, null],
    },
    p50: [2, null],
    p99: [3, null],
    totals: {
      requests: 8,
      success: 2,
      clientError: 0,
      limited: 6,
      banned: 0,
      serverError: 0,
      p50: 2,
      p99: 3,
    },
    before: null,
  });
});

test("of several servers, those that started or were lost a step after the first values do not know all", () => {
  const serverOf = (state: "up" | "unknown" | "lost", startedAgo: number, seenAgo = 0) =>
    Object({
      name: `${state}, ${startedAgo}`,
      state,
      startedAt: new Date((NOW_S - startedAgo) * 1_000).toISOString(),
      seenAt: new Date((NOW_S - seenAgo) * 1_000).toISOString(),
    });
  const servers: ServerList["items"] = [
    serverOf("up", 60),
    serverOf("up", 10),
    serverOf("up", 9),
    serverOf("unknown", 5),
    serverOf("lost", 60, 10),
    serverOf("lost", 61, 9),
  ];
  expect(forgottenOf(DATA, servers)).toEqual([
    { name: "up, 9", state: "up", until: NOW_S - 9 },
    { name: "lost, 61", state: "lost", until: NOW_S - 9 },
  ]);
  // What nobody knows is no gap of one of them.
  const unknown = { ...DATA, requests: { ...REQUESTS, success: [null, null, null, 4] } };
  expect(forgottenOf(unknown, servers)).toEqual([]);
  expect(forgottenOf({ ...unknown, requests: { ...REQUESTS, success: [null] } }, servers)).toEqual([]);
  expect(forgottenOf(DATA, servers.slice(2, 3))).toEqual([]);
});
