import { describe, expect, test } from "bun:test";
import { DEFAULT_SETTINGS } from "../../docs/generate.ts";
import { type PetstoreOperation, OPERATIONS } from "../../src/petstore/operations.ts";
import { postmanCollection } from "../../src/petstore/postman.ts";

interface Entry {
  readonly key: string;
  readonly value: string;
  readonly disabled?: boolean;
}

interface Request {
  readonly method: string;
  readonly header: readonly Entry[];
  readonly url: { raw: string; host: string[]; path: string[]; query: Entry[]; variable: Entry[] };
  readonly body?: { mode: string; raw: string };
}

interface Item {
  readonly name: string;
  readonly request: Request;
  readonly response: readonly { name: string; code: number; body: string }[];
}

const text = postmanCollection(DEFAULT_SETTINGS);
const collection: {
  info: { schema: string };
  auth: unknown;
  variable: Entry[];
  item: { name: string; item: Item[] }[];
} = JSON.parse(text);
const items = collection.item.flatMap(({ item }) => item);
const itemOf = (summary: string) => {
  const item = items.find(({ name }) => name === summary);
  if (item === undefined) throw new Error(`no item ${summary}`);
  return item;
};

describe("the Postman collection", () => {
  test("has the version of its format, the address and an empty variable for the key", () => {
    expect(collection.info.schema).toBe(
      "https://schema.getpostman.com/json/collection/v2.1.0/collection.json",
    );
    expect(collection.auth).toEqual({
      type: "bearer",
      bearer: [{ key: "token", value: "{{apiKey}}", type: "string" }],
    });
    expect(collection.variable).toEqual([
      { key: "baseUrl", value: "http://127.0.0.1:8080/v1" },
      { key: "apiKey", value: "" },
    ]);
  });

  test.each(Object.entries<PetstoreOperation>(OPERATIONS))(
    "has %s with its path, parameters and errors",
    (_, operation) => {
      const { request, response } = itemOf(operation.summary);
      const { raw, host, path, query, variable } = request.url;
      expect(request.method).toBe(operation.method);
      expect(raw).toBe(`{{baseUrl}}${operation.path.replace(/\{(\w+)\}/, ":$1")}`);
      expect([...host, ...path].join("/")).toBe(raw);
      expect(variable.map(({ key }) => key)).toEqual(operation.identifier ? [operation.identifier.name] : []);
      expect(query.map(({ key }) => key)).toEqual(Object.keys(operation.query ?? {}));
      expect(request.body?.mode).toBe(operation.body && "raw");
      const names = response.map(({ name }) => name);
      for (const code of operation.errors) expect(names).toContain(code);
      expect(response[0]?.code).toBe(operation.success.status);
    },
  );

  test("sends no optional parameter until it is activated", () => {
    const optional = items.flatMap(({ request }) => request.url.query.concat(request.header));
    const active = optional.filter(({ disabled }) => disabled !== true).map(({ key }) => key);
    expect([...new Set(active)]).toEqual(["Content-Type"]);
    expect(itemOf("Add a pet").request.header).toContainEqual(
      expect.objectContaining({ key: "Idempotency-Key", value: "{{$guid}}", disabled: true }),
    );
  });

  test("keeps the digits of integers in saved responses", () => {
    expect(itemOf("Add a pet").response[1]?.body).toContain('"categoryId": 9007199254740993');
  });
});
