import { expect, test } from "bun:test";
import { longDuration, shortDuration } from "../../src/text/durations.ts";

test("in sentences, durations have the largest unit that needs no fraction, and days if there are two", () => {
  const lengths = [1, 90, 300, 3_600, 86_400, 129_600, 172_800, 30 * 86_400];
  const texts = lengths.map((seconds) => longDuration(1_000 * seconds));
  expect(texts.join(", ")).toBe(
    "1 second, 90 seconds, 5 minutes, 1 hour, 24 hours, 36 hours, 2 days, 30 days",
  );
});

test("on pages, durations are minutes from 60 s, and hours or days if there are two", () => {
  const seconds = [-1, 0, 1.9, 59.9, 60, 119, 120, 3_599, 7_199, 7_200, 86_399, 3 * 86_400];
  const texts = seconds.map((each) => shortDuration(each * 1_000));
  expect(texts.join(", ")).toBe("0 s, 0 s, 1 s, 59 s, 1 min, 1 min, 2 min, 59 min, 119 min, 2 h, 23 h, 3 d");
});
