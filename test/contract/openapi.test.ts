import { createConfig, lintFromString } from "@redocly/openapi-core";
import { describe, expect, test } from "bun:test";
import { ERRORS } from "../../src/petstore/errors.ts";
import { parseJson } from "../exact-json.ts";
import { openApiDocument, openApiJson } from "../../src/petstore/openapi/document.ts";
import {
  COMMON_ERRORS,
  operationErrors,
  OPERATIONS,
  type PetstoreOperation,
} from "../../src/petstore/operations.ts";
import type { OperationId } from "../../src/domain/usage-history.ts";
import { Invalid } from "../../src/api/schema.ts";
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

const bigintAsNumber = (_key: string, value: unknown) => (typeof value === "bigint" ? Number(value) : value);
/** As `JSON.parse` reads it. */
const rounded = (node: unknown): unknown => JSON.parse(JSON.stringify(node, bigintAsNumber));

const operations = Object.entries(OPERATIONS) as [OperationId, PetstoreOperation][];
const nodeOf = ({ path, method }: PetstoreOperation) =>
  deref(document["paths"]?.[path]?.[method.toLowerCase()]);

describe("the document as a whole", () => {
  test("passes the recommended lint without an error or a warning", async () => {
    const config = await createConfig({ extends: ["recommended"] });
    const problems = await lintFromString({ source: text, config });
    expect(problems.map(({ ruleId, message, location }) => [ruleId, message, location[0]?.pointer])).toEqual(
      [],
    );
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

  test("its description lists every error code with its status", () => {
    for (const [code, { status, meaning }] of Object.entries(ERRORS)) {
      expect(document["info"]?.["description"] as unknown).toContain(
        `| ${status} | \`${code}\` | ${meaning} |`,
      );
    }
  });
});

/** The recorded responses have the rest of the document, byte for byte. */
describe.each(operations)("the examples of %s", (_, operation) => {
  const node = nodeOf(operation);
  const examplesOf = (content: Node | undefined) =>
    Object.values(deref(deref(content)["content"]?.["application/json"])["examples"] ?? {}).map(
      ({ value }) => value as unknown,
    );

  test("of its request body and of its success are valid", () => {
    const { status, body } = operation.success;
    const shown = examplesOf(node["responses"]?.[String(status)]);
    expect(shown).not.toBeEmpty();
    for (const value of shown) expect(body.read(value)).not.toBeInstanceOf(Invalid);
    if (!operation.body) return;
    const sent = examplesOf(node["requestBody"]);
    expect(sent).not.toBeEmpty();
    for (const value of sent) expect(operation.body.read(value)).not.toBeInstanceOf(Invalid);
  });

  test("of its errors are those of the table, each with its message", () => {
    const codesByStatus = Map.groupBy(
      [...operationErrors(operation), ...COMMON_ERRORS],
      (code) => ERRORS[code].status,
    );
    for (const [status, codes] of codesByStatus) {
      expect(examplesOf(node["responses"]?.[String(status)])).toEqual(
        codes.map((code) => ({ code, message: MESSAGES[code], status })),
      );
    }
  });
});

test("the examples of headers are those of a server", () => {
  const headers = document["components"]?.["headers"];
  const exampleOf = (name: string) => headers?.[name]?.["example"] as unknown;
  expect(exampleOf("Deprecation")).toBe("@1794614400");
  expect(exampleOf("Sunset")).toBe("Thu, 05 Dec 2030 00:00:00 GMT");
  expect(exampleOf("SuccessorLink")).toBe(
    '<http://127.0.0.1:8080/v1/pets?id=1>; rel="successor-version", <http://127.0.0.1:8080/v1/pets?status=available>; rel="successor-version"; title="by status", ' +
      '<http://127.0.0.1:8080/docs/deprecation>; rel="deprecation"; type="text/html"',
  );
  expect(exampleOf("WWW-Authenticate")).toBe('Bearer realm="petstore", error="invalid_token"');
  const { Allow } = document["x-responses-outside-operations"]?.["405"]?.["headers"] ?? {};
  expect(Allow?.["example"] as unknown).toBe("GET, HEAD, POST, OPTIONS");
});

test("the description has the limits and the ban rules of the server", () => {
  const { info } = openApiDocument({
    ...OPTIONS,
    plans: { ...DEFAULT_PLANS, free: { perMinute: 7, perDay: 7_000 } },
    ban: { strikes: 3, graceMs: 1_500, lengthMs: 7_200_000, maxLengthMs: 7_200_000 },
  }) as { info: { description: string } };
  for (const text of [
    "\n| Free | 7 | 7,000 |\n",
    "\n| Enterprise | custom | custom |\n",
    "\n| No valid key | 300 | 10,000 |\n",
    "rejected within 1.5 seconds of the",
    "With 3 strikes the key is banned for 2 hours.",
    "`GET /pets/{petId}` is removed on 5 December 2030.",
  ])
    expect(info.description).toContain(text);
});
