import { expect, test } from "bun:test";
import { workRegularly } from "../../src/runtime/repeat.ts";
import { advance, useFakeTimers } from "../fake-timers.ts";

useFakeTimers();

function start(workSome: () => Promise<boolean>) {
  const errors: unknown[] = [];
  return { errors, work: workRegularly(workSome, (error) => errors.push(error)) };
}

test("works until nothing remains, and begins again ten minutes later", async () => {
  let calls = 0;
  const { work, errors } = start(async () => ++calls < 3);
  await advance(100);
  expect(calls).toBe(1);
  await advance(100);
  await advance(100);
  await advance(599_999);
  expect(calls).toBe(3);
  await advance(1);
  expect(calls).toBe(4);
  await work.close();
  expect(errors).toEqual([]);
});

test("an error is reported, and ten minutes later it tries again", async () => {
  let calls = 0;
  const { work, errors } = start(async () => {
    if (++calls === 1) throw new Error("disk full");
    return false;
  });
  await advance(100);
  expect(errors).toMatchObject([{ message: "disk full" }]);
  await advance(600_000);
  expect({ calls, errors: errors.length }).toEqual({ calls: 2, errors: 1 });
  await work.close();
});

test("closing ends it after the part in progress", async () => {
  let calls = 0;
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const { work } = start(() => (calls++, promise));
  await advance(100);
  const closed = work.close();
  resolve(true);
  await closed;
  await advance(600_000);
  expect(calls).toBe(1);
  await start(async () => ++calls < 0).work.close();
  await advance(100);
  expect(calls).toBe(1);
});
