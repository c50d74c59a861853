import { createConfig, lintFromString } from "@redocly/openapi-core";
import { errorsOf } from "../../src/api/api.ts";
import { describe, expect, test } from "bun:test";
import { ADMIN_ERRORS } from "../../src/operator/errors.ts";
import { leastRoleOf } from "../../src/domain/operators.ts";
import { changesCredentials } from "../../src/operator/sign-in/credential-rules.ts";
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

const SIZES = ["minimum", "maximum", "minLength", "maxLength", "maxItems", "default"];

/** The bounds in a part of the document, each with the names that have it. */
function boundsIn(node: Node, name = "", found: Record<string, string[]> = {}): Record<string, string[]> {
  const bounds = SIZES.flatMap((size) => (Object(node[size]) === node[size] ? [] : (node[size] ?? [])));
  const names = (found[bounds.join(" ")] ??= []);
  if (!names.includes(name)) names.push(name);
  const own = String("in" in node ? node["name"] : name);
  for (const [key, each] of Object.entries(node))
    if (Object(each) === each) boundsIn(each, /^(?:\d+|items|anyOf|schema)$/.test(key) ? own : key, found);
  return found;
}

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
    for (const [status, response] of Object.entries(responses))
      expect([status, "headers" in response]).toEqual([status, status === "429" || status === "503"]);
    const forbidden = String(responses["403"]?.["description"]);
    expect(forbidden.includes("replaced_token")).toBe(changesCredentials(operation));
    const role = `Needs the role \`${leastRoleOf(operation)}\`.`;
    expect([String(node?.["description"]).endsWith(role), node?.["security"]]).toEqual(
      operation.needsNoToken ? [false, [] as never] : [true, undefined],
    );
  });

  test("has the exact bounds of int64, and named schemas as references", () => {
    expect(text).toContain('"minimum": -9223372036854775808');
    expect(text.match(/"\$ref": "#\/components\/schemas\/Key"/g)?.length).toBeGreaterThan(5);
  });

  test("has these bounds of numbers, texts and lists, and these defaults", () => {
    const { "": _none, ...found } = boundsIn(document);
    const sorted = Object.entries(found).map(([bounds, names]) => [bounds, names.toSorted().join(" ")]);
    expect(Object.fromEntries(sorted)).toEqual({
      "-8640000000000000 8640000000000000": "clockAheadMs",
      "-9223372036854775808 9223372036854775807": "after categoryId id keyId operatorId orderId petId",
      "0": "banned clientError connections durationMs latencyMs limited p50 p99 requestsPerSecond serverError success",
      "0 2592000 0": "overlapSeconds",
      "0 2592000 86400": "overlapSeconds",
      "0 3600000": "graceMs",
      "0 9007199254740991":
        "active admitted banned bannedKeys clientError connections deprecatedKeys disabled durationMs errors expired expiringKeys hidden id keyRequests keys limit limited rejections requests revoked serverError serverErrors strikes success times total used waiting",
      "1": "Retry-After",
      "1 100": "address code events id keyName name nonce server state type usedPercent",
      "1 1000": "problem",
      "1 10000": "default given message value",
      "1 10000 100": "limit",
      "1 100000": "message",
      "1 1000000": "strikes",
      "1 1000000000": "perDay perMinute",
      "1 1024": "name petName",
      "1 128": "requestId",
      "1 130": "requestId",
      "1 20": "method",
      "1 200": "code codeVerifier message owner path reason search secret token userAgent",
      "1 2000": "adminUrl help notes publicUrl response url",
      "1 2147483648": "pid",
      "1 2500": "subject",
      "1 300": "address error name provider value",
      "1 3000": "response",
      "1 310": "name",
      "1 3600": "step",
      "1 3600000": "slowerThanMs",
      "1 40": "createdAt hint nextCursor version",
      "1 50": "label labels",
      "1 500 50": "limit",
      "1 60": "code name runtime secret",
      "1 64": "name operator",
      "1 80": "variable",
      "1 8000": "url",
      "1 9007199254740991": "id keyId",
      "10": "path",
      "100 599": "status",
      "1000 2592000000": "lengthMs maxLengthMs",
      "20": "labels",
      "400 599": "status",
      all: "scope",
      asc: "order",
      cookie: "credential",
      id: "sort",
      include: "revoked",
    });
    const parameters = Object.values(document["paths"] ?? {})
      .flatMap((item) => Object.values(item))
      .flatMap(({ parameters: each = {} }) => Object.values(each));
    for (const parameter of parameters)
      expect(parameter).toMatchObject({ required: String(parameter["in"]) === "path" });
    const { ApiError } = document["components"]?.["schemas"] ?? {};
    expect(ApiError).toMatchObject({ additionalProperties: false });
  });

  test("has these error codes of each status", () => {
    const byStatus = Map.groupBy(Object.entries(ADMIN_ERRORS), ([, { status }]) => status);
    const codes = [...byStatus].map(([status, some]) => [status, some.map(([code]) => code).join(" ")]);
    expect(Object.fromEntries(codes)).toEqual({
      400: "invalid_json invalid_body invalid_parameter",
      401: "not_signed_in invalid_token invalid_code rejected_sign_in",
      403: "sign_in_not_allowed forbidden_role replaced_token forbidden_host forbidden_origin",
      404: "not_found operator_not_found key_not_found pet_not_found order_not_found",
      405: "method_not_allowed",
      409: "operator_exists operator_not_active operator_of_provider own_operator last_admin too_many_operators key_not_active pet_ordered pet_has_orders no_provider no_webhook order_closed",
      413: "body_too_large",
      415: "unsupported_media_type",
      429: "too_many_attempts too_many_requests",
      500: "internal_error",
      503: "unavailable provider_unavailable",
    });
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
