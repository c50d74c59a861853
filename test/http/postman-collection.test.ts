import { expect, test } from "bun:test";
import { runInNewContext } from "node:vm";
import { OPERATIONS } from "../../src/petstore/operations.ts";
import { useService } from "../service.ts";

/** The parts of the format that the collection has. */
interface Value {
  readonly key: string;
  readonly value: string;
  readonly disabled?: boolean;
}
interface Item {
  readonly name: string;
  readonly event?: readonly { readonly listen: string; readonly script: { readonly exec: string[] } }[];
  readonly request: {
    readonly method: string;
    readonly header: readonly Value[];
    readonly body?: { readonly mode: string; readonly raw: string };
    readonly url: {
      readonly raw: string;
      readonly host: readonly string[];
      readonly path: readonly string[];
      readonly query: readonly Value[];
      readonly variable: readonly Value[];
    };
  };
}
interface Collection {
  readonly info: { readonly name: string; readonly description: string; readonly schema: string };
  readonly auth: { readonly type: string; readonly bearer: readonly Value[] };
  readonly variable: readonly Value[];
  readonly item: readonly { readonly name: string; readonly item: readonly Item[] }[];
}

const service = await useService();
const response = await fetch(new URL("/postman_collection.json", service.url));
const collection: Collection = JSON.parse(await response.text());
const items = collection.item.flatMap(({ item }) => item);

/** Sends a request as Postman does. `all` enables the parameters that are disabled. */
async function send({ request, event = [] }: Item, variables: Map<string, string>, all: boolean) {
  const resolve = (text: string): string =>
    text.replace(/\{\{(.+?)\}\}/g, (_, name: string) =>
      name === "$guid" ? crypto.randomUUID() : (variables.get(name) ?? ""),
    );
  const { method, url, header, body } = request;
  const isSent = ({ disabled }: Value) => all || !disabled;
  const inPath = new Map(url.variable.map(({ key, value }) => [`:${key}`, value]));
  const query = url.query.filter(isSent).map(({ key, value }) => `${key}=${encodeURIComponent(value)}`);
  const address = [...url.host, ...url.path.map((part) => inPath.get(part) ?? part)].join("/");
  const [token] = collection.auth.bearer;
  const sent = await fetch(resolve(`${address}?${query.join("&")}`), {
    method,
    headers: [
      ["Authorization", `Bearer ${resolve(token?.value ?? "")}`],
      ...header.filter(isSent).map(({ key, value }): [string, string] => [key, resolve(value)]),
    ],
    ...(body && { body: resolve(body.raw) }),
  });
  const text = await sent.text();
  const collectionVariables = { set: (name: string, value: string) => void variables.set(name, value) };
  const pm = { response: { text: () => text }, collectionVariables };
  for (const { script } of event) runInNewContext(script.exec.join("\n"), { pm });
  return sent.status;
}

test("GET /postman_collection.json is a collection of format v2.1 with the URL of the server", () => {
  expect([response.status, response.headers.get("content-type")]).toEqual([200, "application/json"]);
  expect(response.headers.get("etag")).toBeTruthy();
  expect(collection.info).toEqual({
    name: "Petstore",
    description: expect.stringContaining(`(${service.url.replace("/v1", "/docs")})`),
    schema: "https://schema.getpostman.com/json/collection/v2.1.0/collection.json",
  });
  expect(collection.auth).toEqual({
    type: "bearer",
    bearer: [{ key: "token", value: "{{apiKey}}", type: "string" }],
  } as never);
  expect(collection.variable).toEqual([
    { key: "baseUrl", value: service.url },
    { key: "apiKey", value: "pet_live_YOUR_KEY" },
    { key: "petId", value: "1" },
    { key: "orderId", value: "1" },
  ]);
  expect(collection.item.map(({ name }) => name)).toEqual(["Pets", "Orders", "Key"]);
});

test("it has a request for each operation, whose optional parameters are disabled", () => {
  const operations = Object.values(OPERATIONS);
  expect(items).toHaveLength(operations.length);
  for (const { method, path, summary } of operations) {
    const item = items.find(({ name }) => name.replace(" (deprecated)", "") === summary);
    expect(item?.request.method).toBe(method);
    expect(item?.request.url.raw).toBe(`{{baseUrl}}${path.replace(/\{(.+)\}/, ":$1")}`);
  }
  const [list, create] = items.map(({ request }) => request);
  expect(list?.url.query.map(({ key, value, disabled }) => [key, value, disabled])).toEqual([
    ["limit", "20", true],
    ["categoryId", "7", true],
    ["status", "available", true],
    ["id", "1,2", true],
    ["cursor", expect.any(String), true],
  ]);
  expect(list?.header).toMatchObject([{ key: "If-None-Match", disabled: true }]);
  expect(create?.header).toMatchObject([
    { key: "Content-Type", value: "application/json" },
    { key: "Idempotency-Key", value: "{{$guid}}", disabled: true },
  ]);
  expect(JSON.parse(create?.body?.raw ?? "")).toEqual({ name: "Rex", categoryId: 7, status: "available" });
});

test("its requests succeed in their order, on a server with pets and orders of others", async () => {
  const { secret } = await service.newKey();
  await service.post("/store/orders", { petId: await service.newPet() }, { key: secret });
  const variables = new Map(collection.variable.map(({ key, value }) => [key, value]));
  variables.set("apiKey", service.key);
  const statuses = Object.values(OPERATIONS).map(({ success }) => success.status);
  for (const all of [false, true]) {
    const received: number[] = [];
    for (const item of items) received.push(await send(item, variables, all));
    expect(received).toEqual(statuses);
  }
  expect([variables.get("petId"), variables.get("orderId")]).toEqual(["3", "3"]);
});
