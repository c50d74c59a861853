import { expect, test } from "bun:test";
import { curlText, httpText, requestOf } from "../../../src/docs-site/browser/try-it/request.ts";
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

test("curl sends the same request, whatever the fields contain", async () => {
  const received: { method: string; path: string; headers: Headers; body: string }[] = [];
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    async fetch(request) {
      const { pathname, search } = new URL(request.url);
      const { method, headers } = request;
      received.push({ method, path: pathname + search, headers, body: await request.text() });
      return new Response("ok");
    },
  });
  try {
    const origin = { baseUrl: `${server.url.origin}/v1`, key: KEY };
    const name = 'O\'Hara $HOME `id` "quoted" \\ 🐈';
    const operations = [
      { operation: createPet, values: { name, categoryId: "7", "Idempotency-Key": "it's-$1" } },
      { operation: { ...createPet, method: "PATCH" as const }, values: { name, categoryId: "7" } },
      { operation: listPets, values: { limit: "20", status: "it's" } },
    ];
    for (const { operation, values } of operations) {
      const request = requestOf({ ...origin, operation, values });
      const child = Bun.spawn(["bash", "-c", curlText(request)], {
        env: { ...process.env, KEY },
        stdout: "pipe",
      });
      expect(await new Response(child.stdout).text()).toContain("200 OK");
      const got = received.at(-1);
      expect(got?.method).toBe(operation.method);
      expect(got?.path).toBe(request.url.pathname + request.url.search);
      expect(got?.body).toBe(request.body ?? "");
      for (const [header, value] of request.headers) expect(got?.headers.get(header)).toBe(value);
    }
    expect(curlText(requestOf({ ...origin, operation: listPets, values: {} }))).not.toContain(KEY);
  } finally {
    await server.stop(true);
  }
});

test("a field of another location with the same name is not confused with it", () => {
  const operation = { ...listPets, fields: [field({ name: "status", in: "header" })] };
  const { url, headers } = requestOf({ ...input, operation, values: { status: "x" } });
  expect(url.search).toBe("");
  expect(headers).toContainEqual(["status", "x"]);
});
