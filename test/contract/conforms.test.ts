import { describe, expect, test } from "bun:test";
import type { OperationId } from "../../src/contract/operations.ts";
import { expectConforms, problemsOf, operationAt } from "../conforms.ts";

const COMMON = {
  "X-Request-Id": "8f14e45f-1a",
  "X-Content-Type-Options": "nosniff",
  "X-RateLimit-Limit": "60",
  "X-RateLimit-Remaining": "59",
  "X-RateLimit-Reset": "1794733260",
};
const JSON_TYPE = { "Content-Type": "application/json" };
const LIST_HEADERS = { ...COMMON, ...JSON_TYPE, ETag: '"x"' };
const REX = '{"id":1,"name":"Rex","categoryId":9007199254740993,"status":"sold"}';

const without = (name: string) =>
  Object.fromEntries(Object.entries(LIST_HEADERS).filter(([header]) => header !== name));

interface Given {
  readonly operation?: OperationId | undefined;
  readonly method?: string;
  readonly status?: number;
  readonly headers?: Record<string, string>;
  readonly body?: string;
}

/** A valid page of pets, except for what is given. */
function problems(given: Given): string[] {
  const { method = "GET", status = 200, headers = LIST_HEADERS, body = `[${REX}]` } = given;
  const operation = "operation" in given ? given.operation : "listPets";
  return problemsOf(operation, method, { status, headers: new Headers(headers), bodyText: body });
}

const error = (code: string, status: number) => JSON.stringify({ code, message: "No.", status });

describe("responses that conform", () => {
  test("a page of pets", () => expect(problems({})).toEqual([]));
  test("an empty page", () => expect(problems({ body: "[]" })).toEqual([]));
  test("HEAD, without a body", () => expect(problems({ method: "HEAD", body: "" })).toEqual([]));
  test("304", () => {
    expect(problems({ status: 304, headers: { ...COMMON, ETag: '"x"' }, body: "" })).toEqual([]);
  });
  test("an unknown path", () => {
    const headers = { ...COMMON, ...JSON_TYPE };
    expect(problems({ operation: undefined, status: 404, headers, body: error("not_found", 404) })).toEqual(
      [],
    );
  });
  test("OPTIONS", () => {
    const headers = { ...COMMON, Allow: "GET, HEAD, POST, OPTIONS" };
    expect(problems({ operation: undefined, method: "OPTIONS", status: 204, headers, body: "" })).toEqual([]);
  });
});

describe("responses that do not conform", () => {
  test.each<[string, Given, string]>([
    ["an undeclared status", { status: 418 }, "status 418 is not declared"],
    ["a status of other operations", { status: 404 }, "status 404 is not declared"],
    ["no ETag", { headers: { ...COMMON, ...JSON_TYPE } }, "header etag is missing"],
    [
      "no X-RateLimit-Reset",
      { headers: without("X-RateLimit-Reset") },
      "header x-ratelimit-reset is missing",
    ],
    [
      "an undeclared header",
      { headers: { ...LIST_HEADERS, "X-Powered-By": "x" } },
      "header x-powered-by is not",
    ],
    ["an invalid header", { headers: { ...LIST_HEADERS, ETag: "x" } }, "header etag: x data must match"],
    [
      "a negative count",
      { headers: { ...LIST_HEADERS, "X-RateLimit-Remaining": "-1" } },
      "header x-ratelimit-rem",
    ],
    [
      "another content type",
      { headers: { ...LIST_HEADERS, "Content-Type": "text/html" } },
      "content-type is text",
    ],
    ["a body that is not JSON", { body: "[" }, "the body is not JSON"],
    ["one pet instead of a list", { body: REX }, "the body data must be array"],
    [
      "an unknown field",
      { body: '[{"id":1,"name":"Rex","categoryId":7,"secret":1}]' },
      "the body data/0 must NOT",
    ],
    [
      "a status that is null",
      { body: '[{"id":1,"name":"Rex","categoryId":7,"status":null}]' },
      "the body data/0/st",
    ],
    ["HEAD with a body", { method: "HEAD" }, "200 must have no body"],
    ["304 with a body", { status: 304, headers: { ...COMMON, ETag: '"x"' } }, "304 must have no body"],
    [
      "a code that belongs to another status",
      { status: 400, headers: { ...COMMON, ...JSON_TYPE }, body: error("pet_not_found", 400) },
      "the body data/code must be equal to one of the allowed values",
    ],
    [
      "a body with another status",
      { status: 400, headers: { ...COMMON, ...JSON_TYPE }, body: error("invalid_parameter", 404) },
      "the body data/status must be equal to constant",
    ],
    [
      "405 without Allow",
      {
        operation: undefined,
        status: 405,
        headers: { ...COMMON, ...JSON_TYPE },
        body: error("method_not_allowed", 405),
      },
      "header allow is missing",
    ],
  ])("%s", (_, given, expected) => {
    expect(problems(given)).toEqual([expect.stringContaining(expected)]);
  });

  test("make expectConforms throw", () => {
    const response = { status: 200, headers: new Headers(LIST_HEADERS), bodyText: "{}" };
    expect(() => expectConforms("listPets", { method: "GET", path: "/v1/pets" }, response)).toThrow(
      "must be array",
    );
  });
});

const found = (method: string, path: string) => operationAt({ method, path });

test("operationAt finds an operation by method and path", () => {
  expect(found("GET", "/v1/pets?limit=5")).toBe("listPets");
  expect(found("HEAD", "/v1/pets/abc")).toBe("getPet");
  expect(found("PATCH", "/v1/store/orders/1")).toBe("updateOrder");
  expect(found("PUT", "/v1/pets")).toBeUndefined();
  expect(found("GET", "/v1/pets/")).toBeUndefined();
  expect(found("GET", "/v1/dogs")).toBeUndefined();
});
