import { expect, test } from "bun:test";
import type { OperationId } from "../../../src/domain/operation-ids.ts";
import {
  cleanKey,
  initialValues,
  keyProblem,
  fieldProblem,
  obstacleOf,
  requestOf,
} from "../../../src/docs-site/browser/request.ts";
import { programsOf } from "../../../src/docs-site/browser/programs.ts";
import { tryItOperation } from "../../../src/docs-site/fields.ts";
import type { TryItField, TryItOperation } from "../../../src/docs-site/page-data.ts";
import { OPERATIONS } from "../../../src/petstore/operations.ts";

const baseUrl = "http://127.0.0.1:8080/v1";
const createPet = tryItOperation("createPet");
const getPet = tryItOperation("getPet");
const listPets = tryItOperation("listPets");
const updateOrder = tryItOperation("updateOrder");

function fieldOf(fields: readonly TryItField[], name: string): TryItField {
  const found = fields.find((field) => field.name === name);
  if (found === undefined) throw new Error(`there is no field ${name}`);
  return found;
}

const limit = fieldOf(listPets.fields, "limit");
const ids = fieldOf(listPets.fields, "id");
const status = fieldOf(listPets.fields, "status");
const petId = fieldOf(getPet.fields, "petId");
const name = fieldOf(createPet.fields, "name");
const categoryId = fieldOf(createPet.fields, "categoryId");
const idempotencyKey = fieldOf(createPet.fields, "Idempotency-Key");

test("an empty field is a problem only if it is required", () => {
  expect(fieldProblem(limit, "")).toBeUndefined();
  expect(fieldProblem(petId, "")).toBe("is required");
});

test.each(Object.keys(OPERATIONS) as OperationId[])("a new form of %s can be sent as it is", (id) => {
  const { fields } = tryItOperation(id);
  const values = initialValues(fields);
  expect(fields.filter((each) => fieldProblem(each, values[each.name] ?? "") !== undefined)).toEqual([]);
  expect(fields.length).toBeGreaterThan(0);
});

test("a new form has the defaults, and what is required or in the body", () => {
  expect(initialValues(createPet.fields)).toEqual({
    name: "Rex",
    categoryId: "7",
    status: "available",
    "Idempotency-Key": "",
  });
  expect(initialValues(listPets.fields)).toEqual({
    limit: "20",
    categoryId: "",
    status: "",
    id: "",
    cursor: "",
    "If-None-Match": "",
  });
});

test("integers are compared exactly with their bounds", () => {
  for (const text of ["9223372036854775807", "-9223372036854775808", "0", "9007199254740993"])
    expect(fieldProblem(petId, text)).toBeUndefined();
  expect(fieldProblem(petId, "9223372036854775808")).toBe("must be at most 9223372036854775807");
  expect(fieldProblem(petId, "-9223372036854775809")).toBe("must be at least -9223372036854775808");
  expect(fieldProblem(limit, "0")).toBe("must be at least 1");
  expect(fieldProblem(limit, "101")).toBe("must be at most 100");
  for (const text of ["01", "+1", "1.0", "abc"])
    expect(fieldProblem(limit, text)).toBe("must be an integer in decimal digits");
});

test("every way to write an integer in JSON is left to the server", () => {
  for (const text of ["1e3", "1.0"]) expect(fieldProblem(categoryId, text)).toBeUndefined();
  expect(fieldProblem(categoryId, "abc")).toBe("must be an integer in decimal digits");
});

test("each identifier of a list is checked", () => {
  for (const text of ["1,2,9007199254740993", "1, 2", " 1 ,2 "])
    expect(fieldProblem(ids, text)).toBeUndefined();
  expect(fieldProblem(ids, "1,,2")).toBe("must be an integer in decimal digits");
  expect(fieldProblem(ids, "1,9223372036854775808")).toBe("must be at most 9223372036854775807");
});

test("characters are counted as code points", () => {
  expect(fieldProblem(name, "🐈".repeat(1_024))).toBeUndefined();
  expect(fieldProblem(name, "🐈".repeat(1_025))).toBe("must have at most 1,024 characters; it has 1,025");
});

test("a value outside a closed set is a problem", () => {
  expect(fieldProblem(status, "sold")).toBeUndefined();
  expect(fieldProblem(status, "Sold")).toBe("must be one of available, pending, sold");
});

test("what a browser cannot send is named: a character of a header, and a path without an identifier", () => {
  const obstacle = (operation: TryItOperation, values: Record<string, string>, key = "") =>
    obstacleOf({ operation, values, key });
  expect(obstacle(createPet, { "Idempotency-Key": "a-1" })).toBeUndefined();
  for (const text of ["🐈", "a\nb", "é"]) {
    const reason = "Idempotency-Key has a character that no header can have.";
    expect(obstacle(createPet, { "Idempotency-Key": text })).toEqual({ field: idempotencyKey, reason });
    expect(fieldProblem(idempotencyKey, text)).toBe("can have visible ASCII characters only");
  }
  expect(obstacle(createPet, {}, "é")?.reason).toBe("The API key has a character that no header can have.");
  expect(obstacle(getPet, { petId: "" })).toEqual({ field: petId, reason: "Enter petId first." });
  expect(obstacle(getPet, { petId: "x" })).toBeUndefined();
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
  expect(keyProblem("", "production")).toBeUndefined();
  expect(keyProblem("pet_live_1", "production")).toBeUndefined();
  expect(keyProblem("pet_test_1", "production")).toBe("Keys of production begin with pet_live_.");
  expect(keyProblem("pet_live_é", "production")).toBe("A key has letters, digits and underscores only.");
});

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
  const spaced = requestOf({ ...input, operation: listPets, values: { id: "1, 2 ,3" } });
  expect(spaced.url.search).toBe("?id=1,2,3");
});

test("a category is a filter of the request and of the call of the client library", () => {
  const values = { categoryId: "9007199254740993", status: "sold" };
  const operation = { operation: listPets, values, ...input };
  expect(requestOf(operation).url.search).toBe("?categoryId=9007199254740993&status=sold");
  expect(programsOf(operation).map(({ code }) => code)).toContainEqual(
    expect.stringContaining(
      'petstore.pets.listPage({\n  categoryId: 9007199254740993n,\n  status: "sold",\n})',
    ),
  );
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

const programsWith = (operation: TryItOperation, values: Record<string, string>) => {
  const programs = programsOf({ operation, values, baseUrl });
  return Object.fromEntries(programs.map(({ language, code }) => [language, code]));
};

test("programs in four languages send the request, with the key of the environment", () => {
  const values = { name: "Rex", categoryId: "9007199254740993", "Idempotency-Key": "order-1" };
  const programs = programsWith(createPet, values);
  expect(Object.keys(programs)).toEqual(["curl", "typescript", "fetch", "python"]);
  for (const code of Object.values(programs))
    for (const part of ["PETSTORE_KEY", "9007199254740993", "order-1"]) expect(code).toContain(part);
  const { curl = "", typescript = "", fetch = "", python = "" } = programs;
  expect(curl).toBe(`curl ${baseUrl}/pets \\
  -H "Authorization: Bearer $PETSTORE_KEY" \\
  -H "Content-Type: application/json" \\
  -H "Idempotency-Key: order-1" \\
  -d '{"name": "Rex", "categoryId": 9007199254740993}'`);
  expect(typescript).toEndWith(`({
  baseUrl: "${baseUrl}",
});

const pet = await petstore.pets.create({
  name: "Rex",
  categoryId: 9007199254740993n,
}, { idempotencyKey: "order-1" });
console.log(pet);`);
  expect(fetch).toBe(`const url = "${baseUrl}/pets";
const response = await fetch(url, {
  method: "POST",
  headers: {
    Authorization: \`Bearer \${process.env.PETSTORE_KEY}\`,
    "Content-Type": "application/json",
    "Idempotency-Key": "order-1",
  },
  body: '{"name": "Rex", "categoryId": 9007199254740993}',
  signal: AbortSignal.timeout(15_000),
});
const text = await response.text();
if (response.status >= 400) throw new Error(text);
console.log(response.status, text);`);
  expect(python).toBe(`import os

import requests

response = requests.post(
    "${baseUrl}/pets",
    headers={
        "Authorization": f"Bearer {os.environ['PETSTORE_KEY']}",
        "Idempotency-Key": "order-1",
    },
    json={"name": "Rex", "categoryId": 9007199254740993},
    timeout=15,
)
print(response.status_code, response.text)
response.raise_for_status()`);
});

test("a program that reads has neither a method nor a body", () => {
  const programs = programsWith(getPet, { petId: "7" });
  expect(programs["fetch"]).toStartWith(`const url = "${baseUrl}/pets/7";
const response = await fetch(url, {
  headers: { Authorization: \`Bearer \${process.env.PETSTORE_KEY}\` },
  signal:`);
  expect(programs["python"]).toContain(`requests.get(
    "${baseUrl}/pets/7",
    headers={"Authorization": f"Bearer {os.environ['PETSTORE_KEY']}"},
    timeout=15,
)`);
});

test("a literal is on one line if it ends before column 72", () => {
  const programs = Array.from({ length: 60 }, (_, length) =>
    programsWith(createPet, { name: "x".repeat(length + 1), categoryId: "7" }),
  );
  for (const language of ["python", "typescript"]) {
    const lines = programs.map(({ [language]: code = "" }) =>
      code.split("\n").find((line) => /name.*}/.test(line)),
    );
    expect(Math.max(...lines.map((line = "") => line.lastIndexOf("}") + 1))).toBe(71);
    expect(lines).toContain(undefined);
  }
  expect(programs.at(-1)?.["curl"]).toEndWith(
    `\n  -d '{\n    "name": "${"x".repeat(60)}",\n    "categoryId": 7\n  }'`,
  );
});

test("a program in TypeScript calls the method that sends the request, or `request` if none does", () => {
  const lastLines = (...given: Parameters<typeof programsWith>) => {
    const { typescript = "" } = programsWith(...given);
    return typescript.split("\n\n").at(-1)?.replaceAll("await petstore.", "");
  };
  expect(lastLines(listPets, {})).toBe("const { items } = pets.listPage();\nconsole.log(items);");
  expect(lastLines(listPets, { limit: "5" })).toContain("pets.listPage({ limit: 5 });");
  const headers = { "If-None-Match": '"a"' };
  expect(lastLines(getPet, { petId: "7" })).toBe("const pet = pets.get(7);\nconsole.log(pet);");
  expect(lastLines(listPets, headers)).toContain(`({\n  headers: { "If-None-Match": '"a"' },\n});`);
  expect(lastLines(getPet, { petId: "7", ...headers })).toContain("pets.get(7, {\n  headers:");
  expect(lastLines(listPets, { limit: "20", id: "7, 9007199254740993" })).toBe(
    "const pets = pets.byIds([7, 9007199254740993n]);\nconsole.log(pets);",
  );
  expect(lastLines(listPets, { id: "1,2", status: "sold" })).toBe(
    'const result = request("GET", "/pets?status=sold&id=1,2");\nconsole.log(result);',
  );
  expect(lastLines(listPets, { id: Array(21).fill("1").join(",") })).toContain(
    'request("GET", "/pets?id=1,1',
  );
  expect(lastLines(updateOrder, { orderId: "3", status: "cancelled" })).toContain("orders.cancel(3);");
  expect(lastLines(updateOrder, { orderId: "3", status: "completed" })).toContain("orders.complete(3);");
  expect(lastLines(updateOrder, { orderId: "3" })).toContain(
    'request("PATCH", "/store/orders/3", {\n  body: {},\n});',
  );
  expect(lastLines(createPet, { name: "Rex", categoryId: "1.5" })).toContain("categoryId: 1.5 }");
  expect(lastLines(createPet, { name: "Rex", categoryId: "1.5" })).toContain("request(");
  expect(lastLines(createPet, { name: "Rex", categoryId: "abc" })).toContain('categoryId: "abc" }');
});
