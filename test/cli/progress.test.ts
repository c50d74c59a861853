import { expect, test } from "bun:test";
import { Progress } from "../../src/cli/progress.ts";

function progressOn(isTerminal: boolean) {
  let written = "";
  let now = 0;
  const stream = { isTerminal, columns: 80, write: (text: string) => void (written += text) };
  const progress = new Progress({ stream, rows: 1_000, elapsed: () => now });
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

test("on a terminal a bar is drawn again ten times a second, and removed at the end", () => {
  const { progress, after, take } = progressOn(true);
  progress.update(2_000, 0.1);
  expect(take()).toBe("");
  after(100);
  progress.update(2_000, 0.25);
  expect(take()).toBe("\r\x1b[2K██████░░░░░░░░░░░░░░░░░░ 2,000 rows, 10,000 rows/s, 25 % done, 0:00 left");
  after(50);
  progress.update(3_000, 0.5);
  expect(take()).toBe("");
  after(119_850);
  progress.update(3_000, 0.5);
  expect(take()).toBe("\r\x1b[2K████████████░░░░░░░░░░░░ 3,000 rows, 17 rows/s, 50 % done, 2:00 left");
  progress.end();
  progress.end();
  expect(take()).toBe("\r\x1b[2K");
});

test("elsewhere there is a line every five seconds", () => {
  const { progress, after, take } = progressOn(false);
  after(4_999);
  progress.update(2_000, 0.5);
  expect(take()).toBe("");
  after(1);
  progress.update(6_000);
  expect(take()).toBe("petstore: 6,000 rows, 1,000 rows/s\n");
  progress.end();
  expect(take()).toBe("");
});
