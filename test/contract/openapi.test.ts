import { createConfig, lintFromString } from "@redocly/openapi-core";
import { describe, expect, test } from "bun:test";
import { type ErrorCode, ERRORS } from "../../src/contract/errors.ts";
import { parseJson } from "../exact-json.ts";
import { openApiDocument, openApiJson } from "../../src/contract/openapi/document.ts";
import {
  COMMON_ERRORS,
  OPERATIONS,
  type Operation,
  type OperationId,
} from "../../src/contract/operations.ts";
import { Invalid } from "../../src/contract/schema.ts";
import { MESSAGES } from "./messages.ts";
import { DEFAULT_PLANS } from "../../src/domain/plans.ts";
import { DEFAULT_BAN } from "../../src/domain/rate-limit.ts";

const SERVERS = { production: "http://127.0.0.1:8080/v1", staging: "http://127.0.0.1:8081/v1" };
const OPTIONS = {
  environment: "production",
  servers: SERVERS,
  plans: DEFAULT_PLANS,
  ban: DEFAULT_BAN,
} as const;
const COMMON = [
  "X-Request-Id",
  "X-Content-Type-Options",
  "X-RateLimit-Limit",
  "X-RateLimit-Remaining",
  "X-RateLimit-Reset",
];

type Node = { readonly [key: string]: Node };

const text = openApiJson(OPTIONS);
const document = parseJson(text) as Node;

function deref(node: Node | undefined): Node {
  if (node === undefined) throw new Error("the document lacks this");
  const ref: unknown = node["$ref"];
  if (typeof ref !== "string") return node;
  return deref(
    ref
      .slice(2)
      .split("/")
      .reduce<Node | undefined>((at, key) => at?.[key], document),
  );
}

/** With every reference replaced by its target. */
function expand(node: unknown): unknown {
  if (Array.isArray(node)) return node.map(expand);
  if (typeof node !== "object" || node === null) return node;
  return Object.fromEntries(Object.entries(deref(node as Node)).map(([key, value]) => [key, expand(value)]));
}

const bigintAsNumber = (_key: string, value: unknown) => (typeof value === "bigint" ? Number(value) : value);
/** As `JSON.parse` reads it. */
const rounded = (node: unknown): unknown => JSON.parse(JSON.stringify(node, bigintAsNumber));

const operations = Object.entries(OPERATIONS) as [OperationId, Operation][];
const nodeOf = ({ path, method }: Operation) => deref(document["paths"]?.[path]?.[method.toLowerCase()]);
const responsesOf = (operation: Operation) =>
  Object.entries(nodeOf(operation)["responses"] ?? {}).map(
    ([status, node]) => [Number(status), deref(node)] as const,
  );
const jsonOf = (node: Node | undefined) => deref(deref(node)["content"]?.["application/json"]);
const headersOf = (response: Node) => Object.keys(response["headers"] ?? {});

function codesByStatus({ errors }: Operation): Map<number, ErrorCode[]> {
  return Map.groupBy([...errors, ...COMMON_ERRORS], (code) => ERRORS[code].status);
}

describe("the document as a whole", () => {
  test("passes the recommended lint without an error or a warning", async () => {
    const config = await createConfig({ extends: ["recommended"] });
    const problems = await lintFromString({ source: text, config });
    expect(problems.map(({ ruleId, message, location }) => [ruleId, message, location[0]?.pointer])).toEqual(
      [],
    );
  });

  test("the lint finds problems: an operation without a summary", async () => {
    const config = await createConfig({ extends: ["recommended"] });
    const problems = await lintFromString({ source: text.replace('"summary": "List pets",', ""), config });
    expect(problems.map(({ ruleId }) => ruleId as string)).toEqual(["operation-summary"]);
  });

  test("equals openApiDocument and has the exact bounds of int64", () => {
    expect(rounded(document)).toEqual(rounded(openApiDocument(OPTIONS)));
    expect(text).toContain('"minimum": -9223372036854775808');
    expect(text).toContain('"maximum": 9223372036854775807');
    expect(text).toContain('"categoryId": 9007199254740993');
  });

  test("has both servers, the one that serves it first", () => {
    const urls = (environment: "production" | "staging") => {
      const { servers } = openApiDocument({ ...OPTIONS, environment }) as { servers: { url: string }[] };
      return servers.map(({ url }) => url);
    };
    expect(urls("production")).toEqual([SERVERS.production, SERVERS.staging]);
    expect(urls("staging")).toEqual([SERVERS.staging, SERVERS.production]);
  });

  test("uses the URL, the keys and the settings of the server that serves it, in examples too", () => {
    const staging = openApiJson({
      environment: "staging",
      servers: { production: "https://api.example.com/v1", staging: "https://staging.example.com/v1" },
      plans: { ...DEFAULT_PLANS, free: { perMinute: 7, perDay: 70 } },
      ban: { ...DEFAULT_BAN, lengthMs: 45_000 },
    });
    const { info, components } = parseJson(staging) as Node;
    expect(String(info?.["description"])).toContain("curl -i https://staging.example.com/v1/pets");
    expect(String(info?.["description"])).toContain("KEY=pet_test_…");
    expect(info?.["contact"] as unknown).toEqual({
      name: "Petstore",
      url: "https://staging.example.com/docs",
    });
    expect(components?.["securitySchemes"]?.["apiKey"]?.["bearerFormat"] as unknown).toBe("pet_test_…");
    const example = (name: string) => components?.["headers"]?.[name]?.["example"] as unknown;
    expect(example("Location")).toBe("https://staging.example.com/v1/pets/1");
    expect(example("NextLink")).toContain("<https://staging.example.com/v1/pets?limit=20&cursor=");
    expect(example("SuccessorLink")).toContain("<https://staging.example.com/docs/deprecation>");
    expect([example("X-RateLimit-Limit"), example("X-RateLimit-Remaining")]).toEqual([7, 6]);
    expect(staging).toContain("because requests continued after a 429. Retry after 45 seconds.");
    // Production is named once, among the servers.
    expect(staging.match(/api\.example\.com/g)).toHaveLength(1);
  });

  test("a program that sends the examples of all parameters gets the first page and executes every write", () => {
    const parameters = operations.flatMap(([, operation]) =>
      Object.values(nodeOf(operation)["parameters"] ?? {}).map((parameter) => deref(parameter)),
    );
    const examples = parameters.flatMap(({ name, schema, ...parameter }) =>
      /"(?:example|examples|default)":/.test(
        JSON.stringify({ ...(rounded(parameter) as object), schema: rounded(schema) }),
      )
        ? [String(name)]
        : [],
    );
    expect([...new Set(examples)].toSorted()).toEqual(["limit", "orderId", "petId"]);
  });

  test("requires a bearer token for every operation", () => {
    expect(document["security"] as unknown).toEqual([{ apiKey: [] }]);
    expect(document["components"]?.["securitySchemes"]?.["apiKey"] as unknown).toMatchObject({
      type: "http",
      scheme: "bearer",
    });
    for (const [, operation] of operations) expect(nodeOf(operation)).not.toHaveProperty("security");
  });

  test("its description lists every error code with its status", () => {
    for (const [code, { status, meaning }] of Object.entries(ERRORS)) {
      expect(document["info"]?.["description"] as unknown).toContain(
        `| ${status} | \`${code}\` | ${meaning} |`,
      );
    }
  });

  test("has the schemas of the API by name", () => {
    const pets = ["Pet", "NewPet", "PetStatus", "Pets"];
    const orders = ["Order", "NewOrder", "OrderUpdate", "OrderStatus", "Orders"];
    const found = Object.keys(document["components"]?.["schemas"] ?? {});
    expect(found.toSorted()).toEqual([...pets, ...orders, "ApiError"].toSorted());
  });

  test("has exactly the operations of the table", () => {
    const found = Object.entries(document["paths"] ?? {}).flatMap(([path, item]) =>
      Object.entries(item).map(([method, node]) => [String(node["operationId"]), method.toUpperCase(), path]),
    );
    const expected = operations.map(([id, { method, path }]) => [id as string, method as string, path]);
    expect(found.toSorted()).toEqual(expected.toSorted());
  });
});

describe.each(operations)("%s in the document", (id, operation) => {
  const node = nodeOf(operation);

  test("has its summary, description, tag and deprecation", () => {
    const { summary, description, tag } = operation;
    expect(node as unknown).toMatchObject({ operationId: id, summary, description, tags: [tag] });
    expect(node["deprecated"] as unknown).toBe(operation.deprecated ? true : undefined);
  });

  test("has exactly the parameters of the table", () => {
    const found = Object.values(node["parameters"] ?? {}).map((parameter) => deref(parameter));
    const names = found.map((parameter) => `${String(parameter["in"])} ${String(parameter["name"])}`);
    const expected = Object.keys(operation.query ?? {}).map((name) => `query ${name}`);
    if (operation.identifier) expected.push(`path ${operation.identifier.name}`);
    if (operation.method === "GET") expected.push("header If-None-Match");
    if (operation.acceptsIdempotencyKey) expected.push("header Idempotency-Key");
    expect(names.toSorted()).toEqual(expected.toSorted());
    for (const [name, schema] of Object.entries(operation.query ?? {})) {
      const parameter = found.find((candidate) => (candidate["name"] as unknown) === name);
      expect(rounded(expand(parameter?.["schema"]))).toEqual(rounded(schema.json));
    }
  });

  test("has the request body of the table, with valid examples", () => {
    if (!operation.body) return expect(node).not.toHaveProperty("requestBody");
    const content = jsonOf(node["requestBody"]);
    expect(rounded(expand(content["schema"]))).toEqual(rounded(operation.body.json));
    const examples = Object.values(content["examples"] ?? {});
    expect(examples).not.toBeEmpty();
    for (const { value } of examples) expect(operation.body.read(value)).not.toBeInstanceOf(Invalid);
  });

  test("has its success with its headers, body and examples", () => {
    const { status, headers, body, of } = operation.success;
    const response = deref(node["responses"]?.[String(status)]);
    expect(headersOf(response).toSorted()).toEqual([...COMMON, ...headers].toSorted());
    const { schema, examples } = jsonOf(response);
    const item = body === "list" ? deref(schema)["items"] : schema;
    expect(rounded(expand(item))).toEqual(rounded(of.json));
    expect(Object.values(examples ?? {})).not.toBeEmpty();
    for (const { value } of Object.values(examples ?? {})) {
      for (const shown of Array.isArray(value) ? value : [value])
        expect(of.read(shown)).not.toBeInstanceOf(Invalid);
    }
  });

  test("has exactly the statuses of the table, and 304 if it has an ETag", () => {
    const expected = [operation.success.status, ...codesByStatus(operation).keys()];
    if ((operation.success.headers as readonly string[]).includes("ETag")) expected.push(304);
    const found = responsesOf(operation).map(([status]) => status);
    expect(found.toSorted()).toEqual(expected.toSorted());
  });

  test("has exactly the error codes of the table, each with an example", () => {
    for (const [status, codes] of codesByStatus(operation)) {
      const { schema, examples } = jsonOf(node["responses"]?.[String(status)]);
      const [error, restriction] = Object.values(schema?.["allOf"] ?? {});
      expect(error as unknown).toEqual({ $ref: "#/components/schemas/ApiError" });
      expect(restriction as unknown).toEqual({
        properties: { code: { enum: codes }, status: { const: status } },
      });
      const shown = Object.values(examples ?? {}).map(({ value }) => value as unknown);
      expect(shown).toEqual(codes.map((code) => ({ code, message: MESSAGES[code], status })));
    }
  });

  test("has the rate limit headers on every response, and the headers of each status", () => {
    for (const [status, response] of responsesOf(operation)) {
      expect(headersOf(response)).toEqual(expect.arrayContaining(COMMON));
      expect(headersOf(response).includes("Retry-After")).toBe(status === 429 || status === 503);
      expect(headersOf(response).includes("WWW-Authenticate")).toBe(status === 401);
      expect(headersOf(response).includes("Deprecation")).toBe(
        operation.deprecated !== undefined && status !== 401 && status !== 429,
      );
    }
  });
});

test("responses outside the operations are declared: OPTIONS, unknown paths and methods", () => {
  const outside = document["x-responses-outside-operations"] ?? {};
  const common = COMMON_ERRORS.map((code) => ERRORS[code].status);
  const statuses = Object.keys(outside).map(Number);
  expect(statuses.toSorted()).toEqual([...new Set([204, 403, 404, 405, ...common])].toSorted());
  for (const response of Object.values(outside)) {
    expect(headersOf(deref(response))).toEqual(expect.arrayContaining(COMMON));
  }
  expect(headersOf(deref(outside["405"]))).toContain("Allow");
  expect(headersOf(deref(outside["204"]))).toContain("Allow");
});

describe("numbers and dates in the document", () => {
  const description = String(document["info"]?.["description"]);
  const schemas = document["components"]?.["schemas"];
  const parameters = document["components"]?.["parameters"];
  const headers = document["components"]?.["headers"];

  test("plans", () => {
    for (const row of [
      "| Free | 60 | 1,000 |",
      "| Pro | 300 | 10,000 |",
      "| Business | 1,000 | 100,000 |",
      "| Enterprise | custom | custom |",
      "| No valid key | 300 | 10,000 |",
    ])
      expect(description).toContain(`\n${row}\n`);
  });

  test("bans", () => {
    expect(description).toContain("rejected within 1 second of the");
    expect(description).toContain("With 10 strikes the key is banned for 5 minutes.");
  });

  test("plans and bans of a server with other settings", () => {
    const { info } = openApiDocument({
      ...OPTIONS,
      plans: { ...DEFAULT_PLANS, free: { perMinute: 7, perDay: 7_000 } },
      ban: { strikes: 3, graceMs: 1_500, lengthMs: 7_200_000, maxLengthMs: 7_200_000 },
    }) as { info: { description: string } };
    expect(info.description).toContain("\n| Free | 7 | 7,000 |\n");
    expect(info.description).toContain("rejected within 1.5 seconds of the");
    expect(info.description).toContain("With 3 strikes the key is banned for 2 hours.");
  });

  test("bodies, names, pages and idempotency keys", () => {
    expect(description).toContain("| 413 | `body_too_large` | The request body exceeds 16 KiB. |");
    expect(schemas?.["NewPet"]?.["properties"]?.["name"] as unknown).toMatchObject({ maxLength: 1_024 });
    for (const name of ["Pets", "Orders"])
      expect(schemas?.[name] as unknown).toMatchObject({ maxItems: 100 });
    expect(parameters?.["limit"] as unknown).toMatchObject({
      schema: { minimum: 1, maximum: 100, default: 20 },
      example: 20,
    });
    const idempotencyKey = parameters?.["Idempotency-Key"];
    expect(idempotencyKey?.["schema"] as unknown).toMatchObject({ minLength: 1, maxLength: 257 });
    expect(String(idempotencyKey?.["description"])).toContain("up to 255 visible ASCII characters");
    expect(String(idempotencyKey?.["description"])).toContain("within 24 hours");
    expect(description).toContain("\n24 hours every retry gets the first successful response again");
  });

  test("deprecation", () => {
    expect(description).toContain("`GET /pets/{petId}` is removed on 5 December 2030.");
    expect(OPERATIONS.getPet.description).toContain("It is removed on 5 December 2030;");
    expect(headers?.["Deprecation"]?.["example"] as unknown).toBe("@1794614400");
    expect(headers?.["Sunset"]?.["example"] as unknown).toBe("Thu, 05 Dec 2030 00:00:00 GMT");
    expect(headers?.["SuccessorLink"]?.["example"] as unknown).toBe(
      '<http://127.0.0.1:8080/v1/pets?id=1>; rel="successor-version", ' +
        '<http://127.0.0.1:8080/docs/deprecation>; rel="deprecation"; type="text/html"',
    );
  });

  test("authentication", () => {
    const { apiKey } = document["components"]?.["securitySchemes"] ?? {};
    expect(apiKey?.["bearerFormat"] as unknown).toBe("pet_live_…");
    expect(description).toContain("`pet_live_` work in production only");
    expect(description).toContain("`pet_test_` in staging only");
    expect(headers?.["WWW-Authenticate"]?.["example"] as unknown).toBe(
      'Bearer realm="petstore", error="invalid_token"',
    );
  });

  test("examples of the rate limit headers and Allow", () => {
    expect(headers?.["X-RateLimit-Limit"]?.["example"] as unknown).toBe(60);
    const { Allow } = document["x-responses-outside-operations"]?.["405"]?.["headers"] ?? {};
    expect(Allow?.["example"] as unknown).toBe("GET, HEAD, POST, OPTIONS");
  });
});
