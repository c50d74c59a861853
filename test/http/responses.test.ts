import { expect, test } from "bun:test";
import type { Decision } from "../../src/domain/rate-limit.ts";
import { headerLinesOf, rateLimitedResponse, rateLimitLines } from "../../src/http/responses.ts";

const allowed: Decision = { outcome: "allowed", limit: 60, remaining: 59, resetAt: 1_000, retryAfter: 0 };

test("the rate limit headers are those of the decision", () => {
  const lines = "X-RateLimit-Limit: 60\r\nX-RateLimit-Reset: 1000\r\nX-RateLimit-Remaining: 59\r\n";
  expect(rateLimitLines(allowed)).toBe(lines);
  expect(rateLimitLines({ ...allowed, outcome: "limited", retryAfter: 7 })).toBe(
    `${lines}Retry-After: 7\r\n`,
  );
});

test("the body of a 429 has the seconds of Retry-After", () => {
  const messageOf = (outcome: "limited" | "banned", retryAfter: number) => {
    const { status, body } = rateLimitedResponse({ ...allowed, outcome, remaining: 0, retryAfter });
    expect(status).toBe(429);
    return JSON.parse(String(body)).message as string;
  };
  expect(messageOf("limited", 1)).toBe("Too many requests. Retry after 1 second.");
  expect(messageOf("limited", 60)).toBe("Too many requests. Retry after 60 seconds.");
  expect(messageOf("limited", 86_400)).toBe("Too many requests. Retry after 86400 seconds.");
  expect(messageOf("banned", 1)).toEndWith(" after a 429. Retry after 1 second.");
  expect(messageOf("banned", 300)).toEndWith(" after a 429. Retry after 300 seconds.");
});

test("a value that could inject a header line throws", () => {
  for (const value of ["a\r\nB: c", "a\n", "\0", "猫", "\x7f"]) {
    expect(() => headerLinesOf({ A: value })).toThrow("A must be printable ASCII");
  }
  expect(headerLinesOf({ A: 'b; "c"', D: "" })).toBe('A: b; "c"\r\nD: \r\n');
});
