import { expect, test } from "bun:test";
import {
  latency,
  longDuration,
  parseTypedDuration,
  shortDuration,
  typedDuration,
} from "../../src/text/durations.ts";

test("in sentences, durations have the largest unit that needs no fraction, and days if there are two", () => {
  const lengths = [1, 60, 90, 300, 3_600, 86_400, 129_600, 172_800, 30 * 86_400];
  const texts = lengths.map((seconds) => longDuration(1_000 * seconds));
  expect(texts.join(", ")).toBe(
    "1 second, 1 minute, 90 seconds, 5 minutes, 1 hour, 24 hours, 36 hours, 2 days, 30 days",
  );
});

test("on pages, durations are minutes from 60 s, and hours or days if there are two", () => {
  const seconds = [-1, 0, 1.9, 59.9, 60, 119, 120, 3_599, 7_199, 7_200, 86_399, 172_799, 172_800];
  const texts = seconds.map((each) => shortDuration(each * 1_000));
  expect(texts.join(", ")).toBe(
    "0 s, 0 s, 1 s, 59 s, 1 min, 1 min, 2 min, 59 min, 119 min, 2 h, 23 h, 47 h, 2 d",
  );
});

test("measurements are seconds, milliseconds or microseconds, with the digits that matter", () => {
  const texts = [0, 0.04, 0.9996, 1, 2.14, 340, 999, 1_000, 1_240, 612_000].map(latency);
  expect(texts.join(", ")).toBe("0 ms, 40 µs, 1,000 µs, 1 ms, 2.1 ms, 340 ms, 999 ms, 1 s, 1.2 s, 612 s");
});

test("what a user types is the largest unit that divides the duration, and is read again", () => {
  const durations = [0, 1, 1_500, 90_000, 3_600_000, 5_400_000, 30 * 86_400_000];
  const texts = durations.map(typedDuration);
  expect(texts.join(", ")).toBe("0, 1ms, 1500ms, 90s, 1h, 90m, 30d");
  expect(texts.map(parseTypedDuration)).toEqual(durations);
  expect(["60m", "999999999999s"].map(parseTypedDuration)).toEqual([3_600_000, 999_999_999_999_000]);
  for (const text of ["", "s", "00", "01s", "1.5s", "-1s", "1 s", "1w", "1000000000000s"])
    expect(parseTypedDuration(text)).toBeUndefined();
});
