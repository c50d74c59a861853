import { expect, test } from "bun:test";
import { adminRequestOf } from "../../src/operator/calls.ts";

test.each([
  [{ query: { search: "", owner: "a b", plan: undefined } }, "/api/keys?owner=a+b"],
  [{ query: {} }, "/api/keys"],
])("the URL of a call: parameters without a value are left out: %p", (input, target) => {
  expect(adminRequestOf("listKeys", input)).toMatchObject({ target, method: "GET", body: null });
});

test("an id of the console's URL stays one part of the path", () => {
  expect(adminRequestOf("getKey", { id: "1/../2" }).target).toBe("/api/keys/1%2F..%2F2");
});
