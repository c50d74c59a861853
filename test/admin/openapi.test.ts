import { createConfig, lintFromString } from "@redocly/openapi-core";
import { errorsOf } from "../../src/api/api.ts";
import { describe, expect, test } from "bun:test";
import { ADMIN_ERRORS } from "../../src/operator/errors.ts";
import { adminOpenApiJson } from "../../src/operator/openapi.ts";
import {
  ADMIN_OPERATIONS,
  type AdminOperation,
  COMMON_ADMIN_ERRORS,
  UNAUTHENTICATED_ERRORS,
} from "../../src/operator/operations.ts";
import { unnamedBodies } from "../contract/unnamed-bodies.ts";
import { parseJson } from "../exact-json.ts";

type Node = { readonly [key: string]: Node };

const text = adminOpenApiJson();
const document = parseJson(text) as Node;
const operations = Object.entries<AdminOperation>(ADMIN_OPERATIONS);

describe("the OpenAPI document of the admin API", () => {
  test("passes the recommended lint without an error or a warning", async () => {
    const config = await createConfig({ extends: ["recommended"] });
    const problems = await lintFromString({ source: text, config });
    const found = problems.map(({ ruleId, message, location }) => [ruleId, message, location[0]?.pointer]);
    expect(found).toEqual([]);
  });

  test("has exactly the operations of the table", () => {
    const found = Object.entries(document["paths"] ?? {}).flatMap(([path, item]) =>
      Object.entries(item).map(([method, node]) => [String(node["operationId"]), method.toUpperCase(), path]),
    );
    const expected = operations.map(([id, { method, path }]) => [id, method as string, path]);
    expect(found.toSorted()).toEqual(expected.toSorted());
  });

  test("describes every tag, in the order of the table", () => {
    const tags = Object.values(document["tags"] ?? {}).map(({ name }) => String(name));
    expect(tags).toEqual([...new Set(operations.map(([, { tag }]) => tag))]);
  });

  test.each(operations)("%s has its statuses and error codes", (_id, operation) => {
    const node = document["paths"]?.[operation.path]?.[operation.method.toLowerCase()];
    const common = operation.needsNoToken ? UNAUTHENTICATED_ERRORS : COMMON_ADMIN_ERRORS;
    const codes = [...errorsOf(operation), ...common];
    const statuses = [operation.success.status, ...codes.map((code) => ADMIN_ERRORS[code].status)];
    const responses = node?.["responses"] ?? {};
    expect(Object.keys(responses).toSorted()).toEqual([...new Set(statuses.map(String))].toSorted());
    for (const code of codes)
      expect(String(responses[String(ADMIN_ERRORS[code].status)]?.["description"])).toContain(code);
  });

  test("has the exact bounds of int64, and named schemas as references", () => {
    expect(text).toContain('"minimum": -9223372036854775808');
    expect(text.match(/"\$ref": "#\/components\/schemas\/Key"/g)?.length).toBeGreaterThan(5);
  });

  test("no schema has the name of a JavaScript global, which generated code would shadow", () => {
    const names = Object.keys(document["components"]?.["schemas"] ?? {});
    expect(names).toContain("ApiError");
    expect(names.filter((name) => name in globalThis)).toEqual([]);
  });

  test("every body has a schema with a name in `NAMED_SCHEMAS`", () => {
    const unnamed = operations.filter(([, { path, method }]) => {
      const node = document["paths"]?.[path]?.[method.toLowerCase()];
      return unnamedBodies(node).length > 0;
    });
    expect(unnamed.map(([id]) => id)).toEqual([]);
  });
});
