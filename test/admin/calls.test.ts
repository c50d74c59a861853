import { expect, test } from "bun:test";
import {
  adminRequestOf,
  rateWaitMs,
  readResponse,
  readRejection,
  unexpectedResponse,
  unreadableText,
} from "../../src/operator/calls.ts";

test.each([
  [{ query: { search: "", owner: "a b", plan: undefined } }, "/api/keys?owner=a+b"],
  [{ query: {} }, "/api/keys"],
])("the URL of a call: parameters without a value are left out: %p", (input, target) => {
  expect(adminRequestOf("listKeys", input)).toMatchObject({ target, method: "GET", body: null });
});

test("an id of the console's URL stays one part of the path", () => {
  expect(adminRequestOf("getKey", { id: "1/../2" }).target).toBe("/api/keys/1%2F..%2F2");
});

test("a body is JSON with exact integers", () => {
  const body = { name: "Rex", categoryId: 9_007_199_254_740_993n };
  expect(adminRequestOf("createPet", { body })).toEqual({
    target: "/api/pets",
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: '{"name":"Rex","categoryId":9007199254740993}',
  });
});

test("only a request that exceeded the rate of its operator is sent again, after a second to a minute", () => {
  const waitOf = (status: number, code: string, retryAfter?: string) =>
    rateWaitMs({
      status,
      headers: new Headers(retryAfter === undefined ? {} : { "Retry-After": retryAfter }),
      text: JSON.stringify({ code, message: "Too many.", status }),
    });
  expect(waitOf(429, "too_many_requests", "3")).toBe(3_000);
  expect(waitOf(429, "too_many_requests", "60")).toBe(60_000);
  for (const tooLong of ["61", "999999999", "Infinity"])
    expect(waitOf(429, "too_many_requests", tooLong)).toBeUndefined();
  for (const given of ["0", "-1", "soon", undefined])
    expect(waitOf(429, "too_many_requests", given)).toBe(1_000);
  expect(waitOf(429, "too_many_attempts", "3")).toBeUndefined();
  expect(waitOf(503, "too_many_requests", "3")).toBeUndefined();
});

test("an error is read with its problems, or with the message alone, as of an earlier release", () => {
  const problems = [{ path: ["name"], message: "is required" }];
  const error = { code: "invalid_body", message: "name is required.", status: 400 };
  expect(readRejection({ ...error, problems })).toMatchObject({ code: "invalid_body", problems });
  expect(readRejection(error)).toMatchObject({ code: "invalid_body", message: error.message, problems: [] });
  expect(readRejection({ ...error, status: 200 })).toBeUndefined();
});

test("a response without a body leaves out no rows", () => {
  expect(readResponse("deleteSession", undefined)).toEqual({ body: undefined, unreadable: 0 });
});

test("what cannot be read is told with the number of rows and the version of the server", () => {
  expect([1, 2].map(unreadableText)).toEqual([
    "1 row is left out: this release cannot read it",
    "2 rows are left out: this release cannot read them",
  ]);
  expect([undefined, "1.2.0"].map((version) => unexpectedResponse("http://a", version))).toEqual([
    "an unexpected response from http://a",
    "an unexpected response from http://a, a server of version 1.2.0",
  ]);
});
