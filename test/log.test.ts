import { describe, expect, test } from "bun:test";
import { createLog } from "../src/log.ts";

function logged(details: Record<string, unknown>): { line: string; details: Record<string, unknown> } {
  let line = "";
  createLog((text) => (line = text)).error("event", details);
  return { line, details: JSON.parse(line.slice(line.indexOf("{"))) };
}

describe("a log line", () => {
  test("has the time, the level, the event and the details", () => {
    expect(logged({ a: 1n }).line).toMatch(/^\d{4}-\d\d-\d\dT[\d:.]+Z error event \{"a":"1"\}\n$/);
  });

  test("has an error with its stack and causes", () => {
    const error = new Error("outer", { cause: new TypeError("inner") });
    expect(logged({ error }).details).toMatchObject({
      error: {
        message: "outer",
        stack: expect.stringContaining("log.test.ts"),
        cause: { name: "TypeError" },
      },
    });
  });

  test("is written for an error whose cause is itself", () => {
    const error = new Error("round");
    error.cause = error;
    expect(logged({ error }).details).toMatchObject({ error: { message: "round" } });
  });

  test("has 8 causes of a longer chain", () => {
    let error = new Error("0");
    for (let i = 1; i < 1_000; i++) error = new Error(String(i), { cause: error });
    expect(logged({ error }).line.match(/"message"/g)).toHaveLength(9);
  });

  test("is written for circular details, and for a property that throws", () => {
    const circular: Record<string, unknown> = {};
    circular["self"] = circular;
    expect(logged({ circular }).line).toContain("(seen above)");
    const hostile = Object.defineProperty(new Error("x"), "message", {
      get() {
        throw new Error("hostile");
      },
    });
    expect(logged({ hostile }).line).toContain("unprintable");
  });

  test("has at most 16 KiB of details", () => {
    expect(logged({ text: "x".repeat(1_000_000) }).line.length).toBeLessThan(17_000);
  });
});

test("a log whose output fails does not throw", () => {
  const log = createLog(() => {
    throw new Error("no space left");
  });
  expect(() => log.error("event", { error: new Error("x") })).not.toThrow();
});
