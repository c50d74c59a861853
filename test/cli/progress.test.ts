import { afterEach, expect, jest, spyOn, test } from "bun:test";
import * as fc from "fast-check";
import { Progress, type ProgressOptions } from "../../src/cli/commands/data/progress.ts";

function progressOn(
  isTerminal: boolean,
  { columns = 80, ...options }: Partial<ProgressOptions> & { readonly columns?: number } = {},
) {
  let written = "";
  let now = 0;
  const stream = { isTerminal, columns, write: (text: string) => void (written += text) };
  spyOn(performance, "now").mockImplementation(() => now);
  const progress = new Progress({ stream, isJson: false, rows: 1_000, ...options });
  return {
    progress,
    after: (ms: number) => void (now += ms),
    take: () => {
      const text = written;
      written = "";
      return text;
    },
  };
}

afterEach(() => void jest.restoreAllMocks());

test("on a terminal a bar is drawn again ten times a second, and removed at the end", () => {
  const { progress, after, take } = progressOn(true);
  progress.update({ done: 2_000, share: 0.1 });
  expect(take()).toBe("");
  after(100);
  progress.update({ done: 2_000, share: 0.25 });
  expect(take()).toBe("\r\x1b[2K██████░░░░░░░░░░░░░░░░░░ 2,000 rows, 10,000 rows/s, 25 % done, 0:00 left");
  after(50);
  progress.update({ done: 3_000, share: 0.5 });
  expect(take()).toBe("");
  after(119_850);
  progress.update({ done: 3_000, share: 0.5 });
  expect(take()).toBe("\r\x1b[2K████████████░░░░░░░░░░░░ 3,000 rows, 17 rows/s, 50 % done, 2:00 left");
  progress.end();
  progress.end();
  expect(take()).toBe("\r\x1b[2K");
});

test("elsewhere there is a line every five seconds", () => {
  const { progress, after, take } = progressOn(false);
  after(4_999);
  progress.update({ done: 2_000, share: 0.5 });
  expect(take()).toBe("");
  after(1);
  progress.update({ done: 6_000 });
  expect(take()).toBe("petstore: 6,000 rows, 1,000 rows/s\n");
  progress.end();
  expect(take()).toBe("");
});

test("the rate and the time left are those of the step", () => {
  const { progress, after, take } = progressOn(true);
  after(10_000);
  progress.update({ step: "copying", unit: "bytes", done: 0, share: 0 });
  expect(take()).toBe("\r\x1b[2K░░░░░░░░░░░░░░░░░░░░░░░░ copying: 0.0 MB");
  after(2_000);
  progress.update({ step: "copying", unit: "bytes", done: 5e6, share: 0.2 });
  expect(take()).toEndWith(" copying: 5.0 MB, 2.5 MB/s, 20 % done, 0:08 left");
  after(1_000);
  progress.update({ step: "checking" });
  expect(take()).toEndWith("\x1b[2Kchecking");
  after(1_000);
  progress.update({ step: "checking", done: 10 });
  expect(take()).toEndWith("\x1b[2Kchecking: 10 rows, 10 rows/s");
});

test("a time left of more than 100 hours is not shown", () => {
  const { progress, after, take } = progressOn(false);
  after(10_000);
  progress.update({ share: 1 / 36_001 });
  expect(take()).toBe("petstore: 0 % done, 6000:00 left\n");
  after(10_000);
  progress.update({ share: 1 / 18_002 });
  expect(take()).toBe("petstore: 0 % done\n");
});

test.each([
  [60, "██████░░░░░ "],
  [50, "█ "],
  [49, ""],
])("on a terminal of %d columns the bar is shorter, so that the text has room", (columns, bar) => {
  const { progress, after, take } = progressOn(true, { columns });
  after(100);
  progress.update({ done: 2_000, share: 0.5 });
  expect(take()).toBe(`\r\x1b[2K${bar}2,000 rows, 10,000 rows/s, 50 % done, 0:00 left`);
});

test("a step that takes longer than expected has no percentage and no time left", () => {
  const { progress, after, take } = progressOn(true, { rows: 0 });
  progress.update({ step: "copying", unit: "bytes", done: 0, share: 0 });
  after(2_000);
  progress.update({ step: "copying", unit: "bytes", done: 5e6, share: 50 });
  expect(take()).toBe("\r\x1b[2Kcopying: 5.0 MB, 2.5 MB/s");
});

test("no percentage is over 100 and nothing is negative or no number, whatever a step reports", () => {
  const amount = fc.option(fc.double(), { nil: undefined });
  const share = fc.option(fc.oneof(fc.double(), fc.double({ min: 0, max: 2 })), { nil: undefined });
  const reports = fc.array(
    fc.record(
      {
        step: fc.constantFrom("copying", "checking"),
        unit: fc.constantFrom("bytes", undefined),
        done: amount,
        share,
        ms: fc.nat(),
      },
      { requiredKeys: ["ms"] },
    ),
  );
  fc.assert(
    fc.property(reports, fc.boolean(), (steps, isTerminal) => {
      const { progress, after, take } = progressOn(isTerminal);
      for (const { ms, ...report } of steps) {
        after(ms);
        progress.update(
          Object.fromEntries(Object.entries(report).filter(([, value]) => value !== undefined)),
        );
        const text = take();
        expect(text).not.toMatch(/-|NaN|Infinity|∞/);
        for (const [, percent = ""] of text.matchAll(/(\S+) %/g))
          expect(Number(percent)).toBeLessThanOrEqual(100);
        for (const [, minutes = "", seconds = ""] of text.matchAll(/(\S+):(\S+) left/g)) {
          expect(Number(minutes)).toBeLessThanOrEqual(6_000);
          expect(Number(seconds)).toBeLessThan(60);
        }
      }
    }),
  );
});

test("with --json nothing is shown", () => {
  for (const isTerminal of [true, false]) {
    const { progress, after, take } = progressOn(isTerminal, { isJson: true });
    after(60_000);
    progress.update({ done: 2_000, share: 0.5 });
    progress.end();
    expect(take()).toBe("");
  }
});
