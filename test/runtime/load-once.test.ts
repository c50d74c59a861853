import { describe, expect, test } from "bun:test";
import { loadFor, loadOnce } from "../../src/runtime/load-once.ts";

describe("a value that is loaded once", () => {
  test("is there at once after it was loaded", async () => {
    let loads = 0;
    const value = loadOnce(async () => ++loads);
    expect(await Promise.all([value(), value()])).toEqual([1, 1]);
    expect(value()).toBe(1);
  });

  test("may be there at once the first time", () => {
    let loads = 0;
    const value = loadOnce(() => ++loads);
    expect([value(), value()]).toEqual([1, 1]);
  });

  test("is loaded again after an error", async () => {
    let loads = 0;
    const value = loadOnce(async () => {
      if (++loads === 1) throw new Error("no file");
      return loads;
    });
    const failed = await Promise.allSettled([value(), value()]);
    expect(failed.map(({ status }) => status)).toEqual(["rejected", "rejected"]);
    expect(await value()).toBe(2);
  });

  test("for a key is loaded again for another key, and one that is slow does not replace a later one", async () => {
    let key = "a";
    const { promise, resolve } = Promise.withResolvers<void>();
    const value = loadFor(
      () => key,
      async (given) => {
        if (given === "a") await promise;
        return given;
      },
    );
    const slow = value();
    key = "b";
    expect(await value()).toBe("b");
    resolve();
    expect(await slow).toBe("a");
    expect(value()).toBe("b");
  });
});
