import { expect, test } from "bun:test";
import type { Decision } from "../../src/domain/rate-limit.ts";
import { rateLimitLines, headerLinesOf } from "../../src/http/responses.ts";

const allowed: Decision = { outcome: "allowed", limit: 60, remaining: 59, resetAt: 1_000, retryAfter: 0 };

test("every answer says where its principal stands, whoever was answered before", () => {
  const lines = (limit: number, remaining: number, resetAt: number, more = "") =>
    `X-RateLimit-Limit: ${limit}\r\nX-RateLimit-Reset: ${resetAt}\r\nX-RateLimit-Remaining: ${remaining}\r\n${more}`;
  expect(rateLimitLines(allowed)).toBe(lines(60, 59, 1_000));
  expect(rateLimitLines({ ...allowed, limit: 300 })).toBe(lines(300, 59, 1_000));
  expect(rateLimitLines({ ...allowed, outcome: "limited", remaining: 0, retryAfter: 7 })).toBe(
    lines(60, 0, 1_000, "Retry-After: 7\r\n"),
  );
  expect(rateLimitLines({ ...allowed, resetAt: 2_000 })).toBe(lines(60, 59, 2_000));
  expect(rateLimitLines(allowed)).toBe(lines(60, 59, 1_000));
});

test("no value breaks out of its header line", () => {
  for (const value of ["a\r\nB: c", "a\n", "\0", "猫", "\x7f"]) {
    expect(() => headerLinesOf({ A: value })).toThrow("A must be printable ASCII");
  }
  expect(headerLinesOf({ A: 'b; "c"', D: "" })).toBe('A: b; "c"\r\nD: \r\n');
});
