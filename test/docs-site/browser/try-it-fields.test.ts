import { expect, test } from "bun:test";
import {
  cleanKey,
  initialValues,
  isSendable,
  keyProblem,
  problemOf,
} from "../../../src/docs-site/browser/request.ts";
import { requestFields } from "../../../src/docs-site/fields.ts";
import { categoryId, idempotencyKey, ids, limit, name, petId, status } from "./try-it-operations.ts";

test("an empty field is a problem only if it is required", () => {
  expect(problemOf(limit, "")).toBeUndefined();
  expect(problemOf(petId, "")).toBe("is required");
});

test.each([
  "listPets",
  "createPet",
  "getPet",
  "listOrders",
  "placeOrder",
  "getOrder",
  "updateOrder",
] as const)("a new form of %s can be sent as it is", (id) => {
  const fields = requestFields(id);
  const values = initialValues(fields);
  expect(fields.filter((each) => problemOf(each, values[each.name] ?? "") !== undefined)).toEqual([]);
  expect(fields.length).toBeGreaterThan(0);
});

test("integers are compared exactly with their bounds", () => {
  for (const text of ["9223372036854775807", "-9223372036854775808", "0", "9007199254740993"])
    expect(problemOf(petId, text)).toBeUndefined();
  expect(problemOf(petId, "9223372036854775808")).toBe("must be at most 9223372036854775807");
  expect(problemOf(petId, "-9223372036854775809")).toBe("must be at least -9223372036854775808");
  expect(problemOf(limit, "0")).toBe("must be at least 1");
  expect(problemOf(limit, "101")).toBe("must be at most 100");
  for (const text of ["01", "+1", "1.0", "abc"])
    expect(problemOf(limit, text)).toBe("must be an integer in decimal digits");
});

test("every way to write an integer in JSON is left to the server", () => {
  for (const text of ["1e3", "1.0"]) expect(problemOf(categoryId, text)).toBeUndefined();
  expect(problemOf(categoryId, "abc")).toBe("must be an integer in decimal digits");
});

test("each identifier of a list is checked", () => {
  expect(problemOf(ids, "1,2,9007199254740993")).toBeUndefined();
  expect(problemOf(ids, "1,,2")).toBe("must be an integer in decimal digits");
  expect(problemOf(ids, "1,9223372036854775808")).toBe("must be at most 9223372036854775807");
});

test("characters are counted as code points", () => {
  expect(problemOf(name, "🐈".repeat(1_024))).toBeUndefined();
  expect(problemOf(name, "🐈".repeat(1_025))).toBe("must have at most 1,024 characters; it has 1,025");
});

test("a value outside a closed set is a problem", () => {
  expect(problemOf(status, "sold")).toBeUndefined();
  expect(problemOf(status, "Sold")).toBe("must be one of available, pending, sold");
});

test("a header that a browser refuses to send is a problem", () => {
  expect(isSendable(idempotencyKey, "a-1")).toBe(true);
  for (const text of ["🐈", "a\nb", "é"]) {
    expect(isSendable(idempotencyKey, text)).toBe(false);
    expect(problemOf(idempotencyKey, text)).toBe("can have visible ASCII characters only");
  }
  expect(isSendable(name, "🐈")).toBe(true);
});

test("a key may be pasted with spaces around it or with its header", () => {
  for (const text of [
    "pet_live_1",
    "  pet_live_1\n",
    "Bearer pet_live_1",
    "Authorization: bearer pet_live_1",
  ])
    expect(cleanKey(text)).toBe("pet_live_1");
});

test("a key of the other environment is recognized before it is sent", () => {
  const server = { keyPrefix: "pet_live_", environment: "production" } as const;
  expect(keyProblem("", server)).toBeUndefined();
  expect(keyProblem("pet_live_1", server)).toBeUndefined();
  expect(keyProblem("pet_test_1", server)).toBe("Keys of production begin with pet_live_.");
  expect(keyProblem("pet_live_é", server)).toBe("A key has letters, digits and underscores only.");
});
