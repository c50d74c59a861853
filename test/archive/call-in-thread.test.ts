import { expect, jest, test } from "bun:test";
import { pollWhile } from "../../src/archive/call-in-thread.ts";
import { advance, useFakeTimers } from "../fake-timers.ts";

useFakeTimers();

test("progress is asked for at the start, ten times a second and at the end", async () => {
  const startedAt = Date.now();
  const polledAt: number[] = [];
  const work = Promise.withResolvers<string>();
  const polled = pollWhile(work.promise, () => polledAt.push(Date.now() - startedAt));
  await advance(250);
  work.resolve("done");
  expect(await polled).toBe("done");
  await advance(250);
  expect([polledAt, jest.getTimerCount()]).toEqual([[0, 100, 200, 250], 0]);
});
