import { expect, test } from "bun:test";
import { Unavailable } from "../../src/contract/errors.ts";
import { Deadlines } from "../../src/http/deadline.ts";

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
