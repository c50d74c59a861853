import { describe, expect, test } from "bun:test";
import { LOG_EVENTS } from "../../src/observe/log-events.ts";
import { createLog, type LogOptions } from "../../src/observe/log.ts";

function logged(error: unknown, options: LogOptions = {}): string {
  let line = "";
  createLog({ format: "json", ...options, write: (text) => (line = text) }).event("connection.failed", {
    error,
  });
  return line;
}

const parsed = (error: unknown) => JSON.parse(logged(error));

describe("a JSON line", () => {
  test("has the time, the level, the event, its message and its details", () => {
    expect(parsed(1n)).toEqual({
      time: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
      level: "error",
      event: "connection.failed",
      message: "a connection failed",
      error: "1",
    });
    expect(logged("two\nlines")).toMatch(/^[^\n]*\n$/);
  });

  test("has what is null or repeated in full", () => {
    expect(parsed({ status: null, error: null, type: "x", text: "x" })).toHaveProperty("error", {
      status: null,
      error: null,
      type: "x",
      text: "x",
    });
  });

  test("has an error with its stack and causes", () => {
    const error = new Error("outer", { cause: new TypeError("inner") });
    expect(parsed(error)).toMatchObject({
      error: {
        message: "outer",
        stack: expect.stringContaining("log.test.ts"),
        cause: { name: "TypeError" },
      },
    });
  });

  test("is written for circular details, for an error whose cause is itself, and for a property that throws", () => {
    const error = new Error("round");
    error.cause = error;
    expect(parsed(error)).toMatchObject({ error: { message: "round" } });
    const circular: Record<string, unknown> = {};
    circular["self"] = circular;
    expect(logged(circular)).toContain("(seen above)");
    expect(parsed(hostileError())).toMatchObject({
      event: "connection.failed",
      unprintable: "Error: hostile",
    });
  });

  test("has at most 17,000 characters, and is still JSON", () => {
    const line = logged('"'.repeat(1_000_000));
    expect(line.length).toBeLessThan(17_000);
    expect(JSON.parse(line)).toMatchObject({
      event: "connection.failed",
      cut: expect.stringMatching(/^\{"time":"/),
    });
    const room = 16_384 - logged("").trimEnd().length;
    expect(parsed("x".repeat(room))).toHaveProperty("error");
    expect(parsed("x".repeat(room + 1))).toHaveProperty("cut");
  });
});

describe("a line of text", () => {
  const text = (error: unknown) => logged(error, { format: "text" });

  test("has the time, the level, the message, the event and its details", () => {
    expect(text("a-1.2")).toMatch(
      /^\d{4}-\d\d-\d\dT[\d:.]+Z error a connection failed \[connection\.failed\] error=a-1\.2\n$/,
    );
    expect(text("two words")).toEndWith(' error="two words"\n');
    expect(text(undefined)).toEndWith(" error=none\n");
    expect(text(null)).toEndWith(" error=null\n");
  });

  test("has its message below that of other levels", () => {
    const lines: string[] = [];
    const log = createLog({ format: "text", write: (line) => lines.push(line) });
    log.event("key-changes.readable");
    log.event("clock.doubted");
    log.event("connection.failed", { error: "x" });
    expect(lines.map((line) => line.slice("2026-11-15T12:00:00.000Z ".length).slice(0, 8))).toEqual([
      "info  ch",
      "warn  th",
      "error a ",
    ]);
  });

  test("has the stack of an error and of its causes below it", () => {
    const lines = text(new Error("outer", { cause: new TypeError("inner") })).split("\n");
    expect(lines[0]).toEndWith(' error="Error: outer"');
    expect(lines[1]).toMatch(/^ {4}at .*log\.test\.ts/);
    expect(lines.filter((line) => line === "    Caused by TypeError: inner")).toHaveLength(1);
  });

  test("has nothing that a terminal obeys or hides", () => {
    const hidden = "\u001b[31m \u0007 \u009b \u202e \u2028 \r\n";
    const line = text(new Error(hidden, { cause: new Error(hidden) }));
    expect(line.replaceAll("\n", "")).not.toMatch(/[\p{Cc}\p{Cf}\p{Zl}]/u);
    expect(text(hidden).trimEnd()).not.toMatch(/[\p{Cc}\p{Cf}\p{Zl}]/u);
  });

  test("is written for a property that throws, and is at most 33,000 characters long", () => {
    expect(text(hostileError())).toContain('unprintable="Error: hostile"');
    expect(text("x".repeat(1_000_000)).length).toBeLessThan(33_000);
    const room = 16_384 - " error=".length;
    expect(text("x".repeat(room))).toEndWith("x\n");
    expect(text("x".repeat(room + 1))).toEndWith("x…\n");
  });
});

test("a line has 8 causes of a longer chain", () => {
  let error = new Error("0");
  for (let i = 1; i < 1_000; i++) error = new Error(String(i), { cause: error });
  expect(logged(error).match(/"message":"\d+"/g)).toHaveLength(9);
  expect(logged(error, { format: "text" }).match(/Caused by/g)).toHaveLength(8);
});

test("a level leaves out the less important events", () => {
  const events = ["server.stopped", "clock.changed", "connection.failed"] as const;
  const written = (level: "info" | "warn" | "error") => {
    const lines: string[] = [];
    const log = createLog({ format: "json", level, write: (line) => lines.push(line) });
    log.event("server.stopped", { afterMs: 1 });
    log.event("clock.changed", { byMs: 1 });
    log.event("connection.failed", { error: "x" });
    // The metrics have their number.
    const count = (level: string) => lines.filter((line) => JSON.parse(line).level === level).length;
    expect<object>(log.lines).toEqual({ info: count("info"), warn: count("warn"), error: count("error") });
    return lines.map((line) => JSON.parse(line).event);
  };
  expect(written("info")).toEqual([...events]);
  expect(written("warn")).toEqual(events.slice(1));
  expect(written("error")).toEqual(events.slice(2));
});

test("a log whose output fails does not throw", () => {
  const log = createLog({
    write() {
      throw new Error("no space left");
    },
  });
  expect(() => log.event("connection.failed", { error: new Error("x") })).not.toThrow();
});

test("no field of an event replaces one that every line has", () => {
  const fields = Object.values<{ level: string; fields?: readonly string[] }>(LOG_EVENTS).flatMap(
    (event) => event.fields ?? [],
  );
  for (const field of ["time", "level", "event", "message", "cut"]) expect(fields).not.toContain(field);
});

function hostileError(): Error {
  return Object.defineProperty(new Error("x"), "message", {
    get() {
      throw new Error("hostile");
    },
  });
}

test.each(["connections", "database", "admin"] as const)(
  "the warning of %s in plain text is a problem and its remedy, which petstore doctor shows apart",
  (what) => expect(LOG_EVENTS[`${what}.plain-text`].message.split("; ")).toHaveLength(2),
);
