import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { declaredStatuses, escapeBytes, problemOf, readResponses } from "../../attacks/fuzz-checks.ts";
import { fuzzRequest } from "../../attacks/fuzz-requests.ts";
import { runFuzz } from "../../attacks/fuzz-run.ts";
import { Random } from "../../attacks/random.ts";
import { DEFAULT_PLANS } from "../../src/domain/plans.ts";
import { NO_LIMITS, type Service, startService } from "../service.ts";

const OK = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}";
const CLOSING = "HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
const GET = { text: "", method: "GET", isFramed: true };
const RAW = { text: "", method: "", isFramed: false };
const DECLARED = new Set([200, 400]);

describe("fuzzRequest", () => {
  const requestsOf = (seed: number) => {
    const random = new Random(seed);
    return Array.from({ length: 500 }, () => fuzzRequest(random, "key"));
  };

  test("the same seed gives the same requests, another seed others", () => {
    expect(requestsOf(1)).toEqual(requestsOf(1));
    expect(requestsOf(1)).not.toEqual(requestsOf(2));
  });

  test("every character is a byte", () => {
    expect(requestsOf(3).filter(({ text }) => /[^\0-\xff]/.test(text))).toEqual([]);
  });
});

describe("problemOf", () => {
  test("responses to all requests are no problem", () => {
    expect(problemOf([GET, GET, RAW], OK + OK, DECLARED)).toBeUndefined();
    expect(problemOf([GET, GET, GET], OK + CLOSING, DECLARED)).toBeUndefined();
  });

  test("an undeclared status", () => {
    expect(problemOf([GET], OK.replace("200", "500"), DECLARED)).toBe("status 500");
  });

  test("a missing response", () => {
    expect(problemOf([GET, GET], OK, DECLARED)).toBe("1 responses to 2 requests");
  });

  test("bytes that are no response, or a part of one", () => {
    expect(problemOf([GET], "x\n", DECLARED)).toBe("not a response: x\\x0a");
    expect(problemOf([GET], OK.slice(0, -1), DECLARED)).toStartWith("not a response");
  });
});

test("readResponses: a response to HEAD has no body", () => {
  const responses = readResponses("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n" + OK, ["HEAD", "GET"]);
  expect(responses?.map(({ status }) => status)).toEqual([200, 200]);
});

test("declaredStatuses: 5xx only if malformed requests get them", () => {
  const openApi = { paths: { "/pets": { get: { responses: { 200: {}, 503: {} } } } } };
  const page = "| 500 | x |\n<!-- malformed-requests -->\n| 505    | x |\n<!-- /malformed-requests -->";
  expect([...declaredStatuses(openApi, page)]).toEqual([302, 200, 505]);
});

test("escapeBytes: control characters, bytes above 127 and the backslash", () => {
  expect(escapeBytes("a\r\\\xff")).toBe("a\\x0d\\x5c\\xff");
});

describe("a server", () => {
  let service: Service;
  beforeAll(async () => {
    service = await startService({ plans: { ...DEFAULT_PLANS, anonymous: NO_LIMITS } });
  });
  afterAll(() => service.stop());

  test("5,000 bad requests get declared statuses, and good requests among them get 200", async () => {
    const openApi: unknown = await (await fetch(new URL("/openapi.json", service.url))).json();
    const errorsPage = readFileSync(join(import.meta.dir, "../../docs/errors.md"), "utf8");
    const { problem, sent, statuses } = await runFuzz({
      port: Number(new URL(service.url).port),
      key: service.key,
      seed: 20_261_115,
      count: 5_000,
      seconds: 60,
      declared: declaredStatuses(openApi, errorsPage),
    });
    expect(problem).toBeUndefined();
    expect(sent).toBe(5_000);
    expect([...statuses.keys()]).toContainValues([200, 201, 400, 401, 404, 405, 415, 431, 505]);
  }, 60_000);
});
