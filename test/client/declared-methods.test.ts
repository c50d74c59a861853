import { afterAll, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Schema } from "../../src/api/schema.ts";
import { Petstore } from "../../src/client/index.ts";
import type { OperationId } from "../../src/domain/operation-ids.ts";
import { OPERATIONS } from "../../src/petstore/operations.ts";
import { startService } from "../service.ts";
import { METHODS } from "./contract-types.ts";

/* Each method of the client returns what its row declares, value for value, and the documentation lists it. */

const service = await startService();
afterAll(() => service.stop());
const petstore = new Petstore({ key: service.key, baseUrl: service.url, onDeprecation() {} });
const { pets, orders, key } = petstore;

const GROUPS = { pets, orders, key };
const NAMES = Object.entries(GROUPS).flatMap(([group, methods]) =>
  Object.keys(methods).map((method) => `${group}.${method}`),
);

const newPet = () => pets.create({ name: "Rex", categoryId: 7, status: "available" });
const newOrder = async () => orders.place({ petId: (await newPet()).id });

/** What each method returns, or what a list has. */
const CALLS: Readonly<Record<string, () => Promise<unknown>>> = {
  "pets.list": () => pets.list().toArray({ max: 5 }),
  "pets.listPage": async () => (await pets.listPage()).items,
  "pets.byIds": async () => pets.byIds([(await newPet()).id, (await newPet()).id]),
  "pets.create": newPet,
  "pets.get": async () => pets.get((await newPet()).id),
  "orders.list": () => orders.list().toArray({ max: 5 }),
  "orders.listPage": async () => (await orders.listPage()).items,
  "orders.get": async () => orders.get((await newOrder()).id),
  "orders.place": newOrder,
  "orders.complete": async () => orders.complete((await newOrder()).id),
  "orders.cancel": async () => orders.cancel((await newOrder()).id),
  "key.get": () => key.get(),
};

/** The type of the values that a kind of schema has in the client. */
const TYPES: Readonly<Record<string, string>> = {
  int64: "bigint",
  integer: "number",
  number: "number",
  boolean: "boolean",
  text: "string",
  time: "string",
  choice: "string",
  other: "string",
};

/** How a value differs from its schema, by the path of each value that does. */
function differences(value: unknown, schema: Schema<unknown>, path: string): string[] {
  if (schema.kind === "nullable") return value === null ? [] : differences(value, schema.inner, path);
  if (schema.kind === "array") {
    if (!Array.isArray(value) || value.length === 0) return [`${path} is no list, or empty`];
    return value.flatMap((item, index) => differences(item, schema.item, `${path}[${index}]`));
  }
  if (schema.kind === "object") {
    const { required, optional } = schema;
    const fields = new Map(Object.entries({ ...required, ...optional }));
    const present = Object.entries(Object(value));
    const names = new Set(present.map(([name]) => name));
    return [
      ...Object.keys(required).flatMap((name) => (names.has(name) ? [] : [`${path}.${name} is missing`])),
      ...present.flatMap(([name, member]) => {
        const field = fields.get(name);
        return field ? differences(member, field, `${path}.${name}`) : [`${path}.${name} is not declared`];
      }),
    ];
  }
  const type = TYPES[schema.kind];
  return typeof value === type ? [] : [`${path} is a ${typeof value}, not a ${type}`];
}

/** The methods of each operation. */
const methodsOf = (id: OperationId) => {
  const found = new Set([METHODS[id](petstore)].flat());
  return NAMES.filter((name) => {
    const [group = "", method = ""] = name.split(".");
    return found.has(Reflect.get(Object(Reflect.get(GROUPS, group)), method));
  });
};

const ROWS = Object.entries(OPERATIONS).flatMap(([id, { success }]) =>
  methodsOf(id as OperationId).map((name) => [name, success.body as Schema<unknown>] as const),
);

test("every method of the client belongs to an operation, and has a call here", () => {
  const names = ROWS.map(([name]) => name).toSorted();
  expect(names).toEqual(NAMES.toSorted());
  expect(names).toEqual(Object.keys(CALLS).toSorted());
});

test.each(ROWS)("%s returns what its row declares", async (name, schema) => {
  await newOrder();
  expect(differences(await CALLS[name]?.(), schema, name)).toEqual([]);
});

test("the documentation lists every method and every operation of the client", () => {
  const page = readFileSync(join(import.meta.dir, "../../docs/client-library.md"), "utf8");
  const [, table = ""] = /## Methods\n([^]*?)\n## /.exec(page) ?? [];
  const namesIn = (cell = "") => [...cell.matchAll(/`([\w.]+)`/g)].map(([, name]) => name);
  const rows = table.split("\n").map((line) => line.split("|"));
  expect(rows.flatMap(([, methods]) => namesIn(methods)).toSorted()).toEqual(expect.arrayContaining(NAMES));
  const operations = Object.keys(OPERATIONS);
  expect(rows.flatMap(([, , operation]) => namesIn(operation))).toEqual(expect.arrayContaining(operations));
});
