import { describe, expect, jest, test } from "bun:test";
import { byOutcome, greatest, type RequestOutcome, sum } from "../../src/domain/live-series.ts";
import { RequestMetrics } from "../../src/observe/request-metrics.ts";
import { EventLoopDelay } from "../../src/observe/event-loop-delay.ts";
import { latencyHistogram, quantilesOf, sumOfCounts } from "../../src/observe/histogram.ts";
import { LiveSeries } from "../../src/observe/live-series.ts";
import { advance } from "../fake-timers.ts";
import * as fc from "fast-check";

const START = Date.UTC(2026, 10, 15, 12);
const SECOND = 1_000;
const MINUTE = 60_000;

/** A server whose requests the test makes up. */
function fakeServer() {
  const server = { now: START, connections: 0 };
  const latencies = latencyHistogram();
  const totals = byOutcome(() => 0);
  const live = new LiveSeries({
    requests: { totals: () => ({ ...totals }), latencies: () => latencies.counts.slice() },
    connections: () => server.connections,
    now: () => server.now,
  });
  return Object.assign(server, {
    live,
    request(outcome: RequestOutcome, ms?: number) {
      totals[outcome]++;
      if (ms !== undefined) latencies.observe(ms / 1_000);
    },
    pass(ms: number, { recording = true } = {}) {
      for (const end = server.now + ms; server.now < end;) {
        server.now += Math.min(5 * SECOND, end - server.now);
        if (recording) live.record();
      }
    },
  });
}

test("a past that is filled in precedes what is recorded, and is as long as it is", () => {
  const server = fakeServer();
  server.request("success");
  server.pass(5 * SECOND);
  const latencies = Uint32Array.from(latencyHistogram().counts);
  const requests = { ...byOutcome(() => 0), success: 3 };
  const startsAt: number[] = [];
  server.live.fillPast(30 * MINUTE, (at, stepMs) => {
    if (stepMs === 5 * SECOND) startsAt.push(at);
    return { requests, latencies, connections: 2 };
  });
  expect([startsAt.length, startsAt[0], startsAt.at(-1)]).toEqual([
    360,
    START - 30 * MINUTE,
    START - 5 * SECOND,
  ]);
  const hour = server.live.read("1h").requests.success;
  expect(hour.slice(0, 359)).toEqual(Array.from({ length: 359 }, () => null));
  expect(hour.slice(359)).toEqual([...Array.from({ length: 360 }, () => 3), 1]);
  expect(server.live.read("15m").before?.success).toBe(540);
  startsAt.length = 0;
  server.live.fillPast(120 * MINUTE, (at, stepMs) => {
    if (stepMs === 5 * SECOND) startsAt.push(at);
    return { requests, latencies, connections: 2 };
  });
  // The hour already has 361 of its 720 steps.
  expect(startsAt).toHaveLength(359);
});

test("the sum and the greatest of a series leave out steps without data", () => {
  expect([sum([]), sum([null, 2, 3])]).toEqual([0, 5]);
  expect([[], [null, null], [null, 0], [3, 1], [1, null, 3]].map(greatest)).toEqual([null, null, 0, 3, 3]);
});

test("a server records at the end of each step of the clock, and not sooner than in a tenth of a second", async () => {
  jest.useFakeTimers();
  const started = (now: number) => {
    const server = Object.assign(fakeServer(), { now });
    const pass = async (ms: number) => {
      server.now += ms;
      await advance(ms);
      return server.live.read("15m").connections.filter((value) => value !== null).length;
    };
    server.live.start();
    return { live: server.live, pass };
  };
  const { live, pass } = started(START + 3 * SECOND);
  expect(live.recent().requestsPerSecond).toBe(0);
  expect([await pass(1_999), await pass(1), await pass(4_999), await pass(1)]).toEqual([0, 1, 1, 2]);
  live.stop();
  expect(await pass(10 * SECOND)).toBe(2);
  const late = started(START + 4_950);
  expect([await late.pass(99), await late.pass(1)]).toEqual([0, 1]);
  late.live.stop();
  jest.useRealTimers();
});

describe("live series", () => {
  test.each([
    ["15m", 5, 180],
    ["1h", 5, 720],
    ["6h", 60, 360],
    ["24h", 60, 1_440],
  ] as const)("%s has steps of %d s, and %d of them, empty at the start", (range, step, count) => {
    const view = fakeServer().live.read(range);
    expect(view.step).toBe(step);
    expect(view.times).toHaveLength(count);
    expect(view.times.slice(-2)).toEqual([START / 1000 - step, START / 1000]);
    for (const values of [...Object.values(view.requests), view.p50, view.p99, view.connections]) {
      expect(values).toEqual(Array.from({ length: count }, () => null));
    }
    expect(view.totals).toEqual({ requests: 0, ...byOutcome(() => 0), p50: null, p99: null });
  });

  test("a step has its own requests, its own quantiles, and the connections at its end", () => {
    const server = fakeServer();
    for (let i = 0; i < 99; i++) server.request("success", 2);
    server.request("serverError", 400);
    server.request("limited");
    server.connections = 7;
    server.pass(5 * SECOND);
    server.request("banned");
    server.connections = 8;
    server.pass(5 * SECOND);
    const view = server.live.read("15m");
    expect(view.times.slice(-2)).toEqual([START / 1000 + 5, START / 1000 + 10]);
    expect(view.requests.success.slice(-3)).toEqual([null, 99, 0]);
    expect(view.requests.serverError.slice(-2)).toEqual([1, 0]);
    expect(view.requests.limited.slice(-2)).toEqual([1, 0]);
    expect(view.requests.banned.slice(-2)).toEqual([0, 1]);
    expect(view.connections.slice(-2)).toEqual([7, 8]);
    expect(view.p50.at(-2)).toBeCloseTo(2, 0);
    expect(view.p50.at(-1)).toBeNull();
    expect(view.totals).toMatchObject({ requests: 102, success: 99, serverError: 1, limited: 1, banned: 1 });
    expect(view.totals.p99).toBeCloseTo(2, 0);
  });

  test("a minute has the requests of all its seconds", () => {
    const server = fakeServer();
    for (let i = 0; i < 24; i++) {
      server.request("success", i < 12 ? 1 : 100);
      server.pass(5 * SECOND);
    }
    const { requests, p50, totals } = server.live.read("24h");
    expect(requests.success.slice(-3)).toEqual([null, 12, 12]);
    expect(p50.at(-2)).toBeCloseTo(1, 0);
    expect(Math.abs((p50.at(-1) ?? 0) - 100)).toBeLessThan(6.25);
    expect(totals.success).toBe(24);
  });

  test("what is older than an hour is not in the last hour, and what is older than a day is gone", () => {
    const server = fakeServer();
    server.request("success", 1);
    server.pass(61 * MINUTE);
    expect(server.live.read("1h").totals.requests).toBe(0);
    expect(server.live.read("24h").totals.requests).toBe(1);
    server.pass(24 * 60 * MINUTE);
    expect(server.live.read("24h").totals.requests).toBe(0);
    expect(server.live.read("24h").connections).not.toContain(null);
  });

  test.each([
    ["15m", 15],
    ["1h", 60],
    ["6h", 6 * 60],
    ["24h", 24 * 60],
  ] as const)(
    "%s: the period before has its totals as soon as the server ran during all of it",
    (range, minutes) => {
      const server = fakeServer();
      server.request("success", 1);
      server.request("limited");
      server.pass(minutes * MINUTE);
      expect(server.live.read(range)).toMatchObject({ totals: { requests: 2 }, before: null });
      server.request("success", 100);
      server.pass(minutes * MINUTE - 5 * SECOND);
      expect(server.live.read(range).before).toBeNull();
      server.pass(5 * SECOND);
      const { totals, before } = server.live.read(range);
      expect([totals.requests, before?.requests, before?.limited]).toEqual([1, 2, 1]);
      expect(before?.p99).toBeCloseTo(1, 0);
    },
  );

  test("a time in which the process was stopped is a gap", () => {
    const server = fakeServer();
    server.pass(10 * SECOND);
    server.pass(30 * SECOND, { recording: false });
    server.pass(5 * SECOND);
    const gap = Array.from({ length: 6 }, () => null);
    expect(server.live.read("15m").connections.slice(-9)).toEqual([0, 0, ...gap, 0]);
  });

  test("after the clock was set back, the series go on", () => {
    const server = fakeServer();
    server.pass(60 * SECOND);
    server.now = START - 60 * MINUTE;
    server.pass(5 * SECOND);
    server.request("success");
    server.pass(5 * SECOND);
    expect(server.live.read("15m").requests.success.at(-1)).toBe(1);
  });

  test("a timer that fires a little early ends the same step", () => {
    const server = fakeServer();
    server.request("success");
    server.now = START + 5 * SECOND - 3;
    server.live.record();
    server.now = START + 5 * SECOND;
    server.live.record();
    expect(server.live.read("15m").requests.success.slice(-2)).toEqual([null, 1]);
  });

  test("until a step is recorded, the one before it is the last", () => {
    const server = fakeServer();
    server.request("success");
    server.pass(5 * SECOND);
    server.now += 5 * SECOND - 50;
    expect(server.live.recent().requestsPerSecond).toBe(0.2);
    expect(server.live.read("15m").times.at(-1)).toBe(START / 1000 + 5);
  });
});

describe("latency quantiles", () => {
  const quantileOf = (ms: number) => {
    const histogram = latencyHistogram();
    histogram.observe(ms / 1_000);
    return quantilesOf(histogram.counts).p50 ?? 0;
  };

  test("are within 7.2 % and a microsecond of the duration, up to ten seconds", () => {
    const durationMs = fc.double({ min: 0.001, max: 10_000, noNaN: true });
    fc.assert(
      fc.property(durationMs, (ms) => {
        expect(Math.abs(quantileOf(ms) - ms)).toBeLessThanOrEqual(ms * 0.072 + 0.001);
      }),
    );
    expect([0, -1, 1e12].map(quantileOf)).toEqual([0.0005, 0.0005, 10_000]);
  });

  test("of several histograms are those of all durations, also of those above the last bound", () => {
    const histogram = latencyHistogram();
    for (let ms = 1; ms <= 100; ms++) histogram.observe(ms / 1_000);
    const { counts } = histogram;
    // The 50th is the last one up to 50 ms.
    const { p50, p99 } = quantilesOf(sumOfCounts([counts, counts]));
    expect([p50?.toFixed(3), p99?.toFixed(3)]).toEqual(["47.500", "95.000"]);
    const slow = latencyHistogram();
    slow.observe(11);
    expect(quantilesOf(sumOfCounts([slow.counts]))).toEqual({ p50: 10_000, p99: 10_000 });
    expect(quantilesOf(sumOfCounts([]))).toEqual({ p50: null, p99: null });
  });

  test("metrics show bounds that are among those that are counted", () => {
    const { bounds, shownBounds } = latencyHistogram();
    expect(bounds).toEqual(bounds.toSorted());
    expect(shownBounds.filter((bound) => !bounds.includes(bound))).toEqual([]);
    expect(shownBounds).toHaveLength(16);
  });
});

/** Samples after each of the given times, in milliseconds. */
function sampled(...intervals: number[]): EventLoopDelay {
  let now = 0;
  const delay = new EventLoopDelay(() => now);
  for (const ms of intervals) {
    now += ms;
    delay.sample();
  }
  return delay;
}

test("a timer that fires on time, or early after a delay, has no delay", () => {
  const { seconds, longestSeconds } = sampled(20, 20, 19);
  expect([seconds.counts[0], seconds.sum, longestSeconds]).toEqual([3, 0, 0]);
});

test("a process that was busy for 500 ms has that delay", () => {
  const { seconds, longestSeconds } = sampled(20, 520, 20);
  expect(longestSeconds).toBe(0.5);
  expect(seconds.sum).toBe(0.5);
  expect([...seconds.counts]).toEqual([2, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0]);
});

test("the longest delay is forgotten after a minute, and not before half a minute", () => {
  const quiet = (ms: number) => Array.from({ length: ms / 20 }, () => 20);
  expect(sampled(520, ...quiet(30_000)).longestSeconds).toBe(0.5);
  expect(sampled(520, ...quiet(60_000)).longestSeconds).toBe(0);
});

test("it samples every 20 ms while it runs", () => {
  jest.useFakeTimers();
  const delay = new EventLoopDelay();
  jest.advanceTimersByTime(500);
  delay.start();
  jest.advanceTimersByTime(100);
  delay.stop();
  jest.advanceTimersByTime(100);
  jest.useRealTimers();
  expect([delay.seconds.counts[0], delay.longestSeconds]).toEqual([5, 0]);
});

test("a request that HTTP/1.1 servers need not support is an error of its client", () => {
  const metrics = new RequestMetrics({ operations: new Map(), isApiPath: () => true });
  for (const status of [400, 501, 505] as const) metrics.countProtocolError(status);
  expect(metrics.totals()).toMatchObject({ clientError: 3, serverError: 0 });
});
