import { expect, test } from "bun:test";
import { Unavailable } from "../../src/contract/errors.ts";
import { Deadlines } from "../../src/http/deadline.ts";

test("work that is done in time passes through, and so does its failure", async () => {
  const deadlines = new Deadlines(1_000);
  expect(await deadlines.race(Promise.resolve(5))).toBe(5);
  expect(deadlines.race(Promise.reject(new Error("own")))).rejects.toThrow("own");
});

test("work that never ends becomes Unavailable, each at its own time", async () => {
  const deadlines = new Deadlines(20);
  const started = performance.now();
  const forever = () => deadlines.race(new Promise(() => {})).catch((error: unknown) => error);
  const first = forever();
  const quick = await deadlines.race(Promise.resolve("quick"));
  const results = await Promise.all([first, forever()]);
  expect(quick).toBe("quick");
  for (const result of results) expect(result).toBeInstanceOf(Unavailable);
  expect(performance.now() - started).toBeGreaterThanOrEqual(19);
});
