import { expect, test } from "bun:test";
import { Unavailable } from "../../src/contract/errors.ts";
import { Deadlines } from "../../src/http/request-timeout.ts";

test("work that is done in time passes through, and so does its failure", async () => {
  const deadlines = new Deadlines(1_000);
  const message = (error: unknown) => (error as Error).message;
  expect(await deadlines.bound(Promise.resolve("done"), message)).toBe("done");
  expect(await deadlines.bound(Promise.reject(new Error("own")), message)).toBe("own");
});

test("work that never ends becomes Unavailable, each at its own time", async () => {
  const deadlines = new Deadlines(20);
  const started = performance.now();
  const forever = () => deadlines.bound(new Promise<unknown>(() => {}), (error) => error);
  const first = forever();
  const quick = await deadlines.bound<unknown>(Promise.resolve("quick"), () => "late");
  const results = await Promise.all([first, forever()]);
  expect(quick).toBe("quick");
  for (const result of results) expect(result).toBeInstanceOf(Unavailable);
  expect(performance.now() - started).toBeGreaterThanOrEqual(19);
});

test("whatever the order in which answers come, those that never come end, and nobody else", async () => {
  const deadlines = new Deadlines(30);
  const all = Array.from({ length: 50 }, (_, i) => {
    const { promise, resolve } = Promise.withResolvers<number>();
    return { i, resolve, bound: deadlines.bound<number | string>(promise, () => "late") };
  });
  for (const { i, resolve } of all.toReversed()) if (i % 3 !== 0) resolve(i);
  const results = await Promise.all(all.map(({ bound }) => bound));
  expect(results).toEqual(all.map(({ i }) => (i % 3 === 0 ? "late" : i)));
  // And it goes on afterwards.
  expect(await deadlines.bound(new Promise<string>(() => {}), () => "late")).toBe("late");
});
