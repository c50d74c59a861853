import { expect, test } from "bun:test";
import { curlText, httpText, requestOf } from "../../../src/docs-site/browser/request.ts";
import { createPet, field, getPet, listPets } from "./try-it-operations.ts";

const baseUrl = "http://127.0.0.1:8080/v1";
const KEY = "pet_live_0123456789";
const input = { baseUrl, key: KEY };

test("an empty field is left out of the request", () => {
  const { url, headers, body } = requestOf({
    ...input,
    operation: listPets,
    values: { limit: "", status: "" },
  });
  expect(url.href).toBe("http://127.0.0.1:8080/v1/pets");
  expect(headers).toEqual([["Authorization", `Bearer ${KEY}`]]);
  expect(body).toBeUndefined();
});

test("query parameters are encoded, and the commas between identifiers stay readable", () => {
  const values = { limit: "20", status: "a&b=c #", id: "1,9007199254740993" };
  const { url } = requestOf({ ...input, operation: listPets, values });
  expect(url.search).toBe("?limit=20&status=a%26b%3Dc%20%23&id=1,9007199254740993");
});

test("an identifier in the path is encoded as one segment", () => {
  const { url } = requestOf({ ...input, operation: getPet, values: { petId: "1/../../x?y" } });
  expect(url.pathname).toBe("/v1/pets/1%2F..%2F..%2Fx%3Fy");
  expect(url.search).toBe("");
});

test("integers of the body are sent digit for digit", () => {
  const digits = "9007199254740993";
  const { body } = requestOf({ ...input, operation: createPet, values: { name: "Rex", categoryId: digits } });
  expect(body).toBe('{"name": "Rex", "categoryId": 9007199254740993}');
});

test("a text that is no number is sent as a string, so that the API explains what is wrong", () => {
  const { body } = requestOf({
    ...input,
    operation: createPet,
    values: { name: 'R"e\\x', categoryId: "abc" },
  });
  expect(body).toBe('{"name": "R\\"e\\\\x", "categoryId": "abc"}');
  for (const text of ["01", "+1", "0x1", "1,2", "1}", "Infinity", " 1"]) {
    const request = requestOf({ ...input, operation: createPet, values: { name: "x", categoryId: text } });
    expect(JSON.parse(request.body ?? "")).toEqual({ name: "x", categoryId: text });
  }
});

test("without any field the body is an empty object", () => {
  const { body, headers } = requestOf({ baseUrl, key: "", operation: createPet, values: {} });
  expect(body).toBe("{}");
  expect(headers).toEqual([["Content-Type", "application/json"]]);
});

test("the request as text has every header, and only the beginning of the key", () => {
  const values = { name: "Rex", categoryId: "7", "Idempotency-Key": "order-1" };
  const text = httpText(requestOf({ ...input, operation: createPet, values }));
  expect(text).toBe(`POST /v1/pets HTTP/1.1
Host: 127.0.0.1:8080
Authorization: Bearer pet_live_••••••••
Content-Type: application/json
Idempotency-Key: order-1

{"name": "Rex", "categoryId": 7}`);
  expect(httpText(requestOf({ ...input, key: "secret", operation: listPets, values: {} }))).not.toContain(
    "secret",
  );
});

test("the curl command names the key as a variable and quotes what a shell would change", () => {
  const values = { name: "O'Hara $HOME", categoryId: "7" };
  const text = curlText(requestOf({ ...input, operation: createPet, values }));
  expect(text).toStartWith(`curl -i ${baseUrl}/pets \\\n  -H "Authorization: Bearer $KEY" \\\n`);
  expect(text).toContain(`'{"name": "O'\\''Hara $HOME", "categoryId": 7}'`);
  expect(text).not.toContain(KEY);
});

test("a field of another location with the same name is not confused with it", () => {
  const operation = { ...listPets, fields: [field({ name: "status", in: "header" })] };
  const { url, headers } = requestOf({ ...input, operation, values: { status: "x" } });
  expect(url.search).toBe("");
  expect(headers).toContainEqual(["status", "x"]);
});
