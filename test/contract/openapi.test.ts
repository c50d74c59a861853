import { createConfig, lintFromString } from "@redocly/openapi-core";
import { describe, expect, test } from "bun:test";
import { ERRORS } from "../../src/petstore/errors.ts";
import { parseJson } from "../exact-json.ts";
import { openApiDocument, openApiJson, parametersOf } from "../../src/petstore/openapi/document.ts";
import {
  COMMON_ERRORS,
  operationErrors,
  OPERATIONS,
  type PetstoreOperation,
} from "../../src/petstore/operations.ts";
import { DEPRECATED_OPERATIONS, OPERATION_IDS, type OperationId } from "../../src/domain/operation-ids.ts";
import { Invalid } from "../../src/api/schema.ts";
import { guidePath } from "../../src/docs-site/links.ts";
import { GUIDE_SOURCES, type GuideName } from "../../src/docs-site/sources.ts";
import { startService } from "../service.ts";
import { unnamedBodies } from "./unnamed-bodies.ts";
import { MESSAGES } from "./messages.ts";
import { DEFAULT_PLANS } from "../../src/domain/plans.ts";
import { DOCUMENTED_DEFAULTS } from "../../src/cli/documented-defaults.ts";
import { DEFAULT_POLICY } from "../../src/domain/policy.ts";
import { DEFAULT_BAN } from "../../src/domain/ban-rules.ts";

type Node = { readonly [key: string]: Node };

const text = openApiJson(DOCUMENTED_DEFAULTS);
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
/** The node as `JSON.parse` reads it. */
const rounded = (node: unknown): unknown => JSON.parse(JSON.stringify(node, bigintAsNumber));

const operations = Object.entries(OPERATIONS) as [OperationId, PetstoreOperation][];
const nodeOf = ({ path, method }: PetstoreOperation) =>
  deref(document["paths"]?.[path]?.[method.toLowerCase()]);

const examplesOf = (content: Node | undefined) =>
  Object.values(deref(deref(content)["content"]?.["application/json"])["examples"] ?? {}).map(
    ({ value }) => value as unknown,
  );

test("the domain names the operations of the table in its order, and those that are deprecated", () => {
  expect(operations.map(([id]) => id)).toEqual([...OPERATION_IDS]);
  const deprecated = operations.filter(([, { deprecated }]) => deprecated !== undefined);
  expect(deprecated.map(([id]) => id)).toEqual([...DEPRECATED_OPERATIONS]);
});

describe("the document as a whole", () => {
  test("passes the recommended lint without an error or a warning", async () => {
    const config = await createConfig({ extends: ["recommended"] });
    const problems = await lintFromString({ source: text, config });
    expect(problems.map(({ ruleId, message, location }) => [ruleId, message, location[0]?.pointer])).toEqual(
      [],
    );
  });

  test("equals openApiDocument and has the exact bounds of int64", () => {
    expect(rounded(document)).toEqual(rounded(openApiDocument(DOCUMENTED_DEFAULTS)));
    expect(text).toContain('"minimum": -9223372036854775808');
    expect(text).toContain('"maximum": 9223372036854775807');
    expect(text).toContain('"categoryId": 9007199254740993');
  });

  test("uses the URL, the keys and the settings of the server that serves it, in examples too", () => {
    const staging = openApiJson({
      ...DOCUMENTED_DEFAULTS,
      environment: "staging",
      baseUrl: "https://staging.example.com/v1",
      otherEnvironmentUrl: "https://api.example.com/v1",
      policy: {
        current: {
          ...DEFAULT_POLICY,
          plans: { ...DEFAULT_PLANS, free: { perMinute: 7, perDay: 70 } },
          ban: { ...DEFAULT_BAN, lengthMs: 45_000 },
        },
      },
    });
    const { info, components, servers } = parseJson(staging) as Node;
    const urls = Object.values(servers ?? {}).map(({ url }) => url as unknown);
    expect(urls).toEqual(["https://staging.example.com/v1", "https://api.example.com/v1"]);
    expect(String(info?.["description"])).toContain("(https://staging.example.com/docs/rate-limits)");
    expect(String(info?.["description"])).toContain("`Authorization: Bearer pet_test_…`");
    expect(info?.["contact"] as unknown).toEqual({
      name: "Petstore",
      url: "https://staging.example.com/docs",
    });
    expect(components?.["securitySchemes"]?.["apiKey"]?.["bearerFormat"] as unknown).toBe("pet_test_…");
    const example = (name: string) => components?.["headers"]?.[name]?.["example"] as unknown;
    expect(example("Location")).toBe("https://staging.example.com/v1/pets?id=1");
    expect(example("NextLink")).toContain("<https://staging.example.com/v1/pets?limit=20&cursor=");
    expect(example("NextOrdersLink")).toContain(
      "<https://staging.example.com/v1/store/orders?limit=20&cursor=",
    );
    expect(example("SuccessorLink")).toContain("<https://staging.example.com/docs/deprecation>");
    expect([example("X-RateLimit-Limit"), example("X-RateLimit-Remaining")]).toEqual([7, 6]);
    expect(staging).toContain("because requests continued after a 429. Retry after 45 seconds.");
    // Production is named once, among the servers.
    expect(staging.match(/api\.example\.com/g)).toHaveLength(1);
  });

  test("every parameter has an example, and requests with all of them succeed, one after the other", async () => {
    await using service = await startService();
    for (const [, operation] of operations) {
      const { parameters = {}, requestBody } = nodeOf(operation);
      const given = Object.values(parameters).map((parameter) => {
        const { name, in: location, example } = deref(parameter) as Readonly<Record<string, unknown>>;
        expect([name, example]).not.toContain(undefined);
        return { name: String(name), location, text: String(example) };
      });
      const namesIn = (location: string) => given.filter((each) => each.location === location);
      const path = operation.path.replace(
        /\{(\w+)\}/,
        (_, name) => given.find((each) => each.name === name)?.text ?? "",
      );
      const query = namesIn("query").map(({ name, text }) => `${name}=${text}`);
      const [body] = requestBody === undefined ? [] : examplesOf(requestBody);
      const { status } = await service.call({
        method: operation.method,
        path: query.length === 0 ? path : `${path}?${query.join("&")}`,
        headers: Object.fromEntries(namesIn("header").map(({ name, text }) => [name, text])),
        ...(body !== undefined && { body: rounded(body) }),
      });
      expect([operation.summary, status]).toEqual([operation.summary, operation.success.status]);
    }
  });

  test("filters name what they select", () => {
    const descriptions = operations.flatMap(([id, operation]) =>
      parametersOf(operation).map(({ name, description }) => `${id} ${name}: ${description}`),
    );
    expect(descriptions.filter((each) => each.includes(": Only "))).toEqual([
      "listPets categoryId: Only pets with this categoryId.",
      "listPets status: Only pets with this status.",
      "listPets id: Only pets with these identifiers, separated by commas. Those that do not exist are left out.",
      "listOrders status: Only orders with this status.",
    ]);
  });

  test("each example of Retry-After is what the message of the same error says", () => {
    const told: string[] = [];
    const visit = (node: unknown): void => {
      if (typeof node !== "object" || node === null) return;
      const { headers, content } = node as { readonly [name: string]: Node | undefined };
      const bodies = Object.entries(content?.["application/json"]?.["examples"] ?? {});
      for (const [code, { value }] of bodies) {
        const [, seconds] = /Retry after (\d+) seconds?\./.exec(String(value?.["message"])) ?? [];
        if (seconds === undefined) continue;
        told.push(code);
        expect([code, String(headers?.["Retry-After"]?.["examples"]?.[code]?.["value"])]).toEqual([
          code,
          seconds,
        ]);
      }
      Object.values(node).forEach(visit);
    };
    visit(document);
    expect([...new Set(told)].toSorted()).toEqual(["key_banned", "rate_limited", "unavailable"]);
  });

  test("patterns mean the same with and without the flag u, which validators of generated clients may leave out", () => {
    const patterns = [...text.matchAll(/"pattern": (".*")/g)].map(([, json = ""]) =>
      String(JSON.parse(json)),
    );
    expect(patterns.length).toBeGreaterThan(5);
    expect(patterns.filter((pattern) => /\\[pP]\{|\\u\{/.test(pattern))).toEqual([]);
    const oneLine = new RegExp(patterns.find((pattern) => pattern.includes("u2028")) ?? "");
    const all = Array.from({ length: 0x10000 }, (_, code) => String.fromCharCode(code));
    const differing = all.filter((each) => oneLine.test(`x${each}`) === /[\p{Cc}\p{Zl}\p{Zp}]/u.test(each));
    expect(differing).toEqual([]);
  });

  test("its description is five lines, and their links lead to pages", () => {
    const description = String(document["info"]?.["description"]);
    expect(description.split("\n")).toHaveLength(5);
    const links = [...description.matchAll(/\]\((?<url>[^)]+)\)/g)].map(({ groups }) => groups?.["url"]);
    const pages = (Object.keys(GUIDE_SOURCES) as GuideName[]).map((name) =>
      DOCUMENTED_DEFAULTS.baseUrl.replace("/v1", guidePath(name)),
    );
    expect(links).toHaveLength(7);
    expect(pages).toEqual(expect.arrayContaining(links));
  });
});

/** The recorded responses have the rest of the document, byte for byte. */
describe.each(operations)("the examples of %s", (_, operation) => {
  const node = nodeOf(operation);
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

test("every body has a schema with a name in `NAMED_SCHEMAS`", () => {
  const unnamed = operations.filter(([, operation]) => unnamedBodies(nodeOf(operation)).length > 0);
  expect(unnamed.map(([id]) => id)).toEqual([]);
});
