import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { parseJson, toJson } from "../../src/api/json.ts";
import type { JsonSchema, ObjectSchema } from "../../src/api/schema.ts";
import { Petstore } from "../../src/client/index.ts";
import { NewPet, Pet } from "../../src/domain/resources.ts";
import { OPERATIONS, type PetstoreInput } from "../../src/petstore/operations.ts";
import { startAdminService } from "../admin/admin-service.ts";
import { cleanUpAfterAll, InProcessCli } from "../cli/cli.ts";

/** What a schema declares, clients send and get back: no field and no parameter is accepted and then ignored. */

cleanUpAfterAll();
const service = await startAdminService();
const listed = await startAdminService();
afterAll(() => Promise.all([service.stop(), listed.stop()]));

/** A value that the schema allows; `number` makes it differ from others. */
function sampleOf(json: JsonSchema, number: number): unknown {
  const { type, enum: values, format } = json;
  if (Array.isArray(values)) return values[number % values.length];
  if (type === "boolean") return number % 2 === 1;
  if (format === "int64") return 9_007_199_254_740_993n + BigInt(number);
  if (type === "integer") return Number(json["minimum"]) + number;
  if (format === "date-time") return new Date(1_794_735_000_000 + number).toISOString();
  if (type === "string") return `“${number}”, "é" \\ 😀`;
  throw new Error(`no sample of ${JSON.stringify(json)}`);
}

/** All fields, the optional ones too. */
function objectWith({ required, optional }: ObjectSchema<unknown>, number: number): Record<string, unknown> {
  const fields = Object.entries({ ...required, ...optional });
  return Object.fromEntries(fields.map(([name, { json }]) => [name, sampleOf(json, number)]));
}

const bodyOf = (object: Record<string, unknown>) => ({ body: toJson(object) });

describe("every declared field of a pet", () => {
  const given = objectWith(NewPet, 1);
  let created: Record<string, unknown>;

  test("is one of the fields of a pet", () => {
    expect(Object.keys({ ...Pet.required, ...Pet.optional })).toEqual(["id", ...Object.keys(given)]);
  });

  test("comes back from createPet, getPet and listPets, by its identifier too", async () => {
    const response = await service.call({ method: "POST", path: "/pets", ...bodyOf(given) });
    expect(response.status).toBe(201);
    created = recordOf(response.json);
    expect(created).toEqual({ id: created["id"], ...given });
    for (const path of [`/pets/${created["id"]}`, `/pets?id=${created["id"]}`, "/pets?limit=100"]) {
      const { json } = await service.call({ path });
      expect([json].flat()).toContainEqual(created);
    }
  });

  test("comes back from the client library", async () => {
    const petstore = new Petstore({ key: service.key, baseUrl: service.url });
    const body = NewPet.read(objectWith(NewPet, 2));
    if (!("name" in body)) throw new Error("the sample is not valid");
    const pet = await petstore.pets.create(body);
    expect({ ...pet }).toEqual({ id: pet.id, ...body });
    expect(await petstore.pets.byIds([pet.id])).toContainEqual(pet);
  });

  test("can be given and changed by operators", async () => {
    const before = await service.ok("POST /api/pets", bodyOf(objectWith(NewPet, 3)));
    expect(before).toEqual({ id: before["id"], ...objectWith(NewPet, 3) });
    const change = objectWith(NewPet, 4);
    const after = await service.ok(`PATCH /api/pets/${before["id"]}`, bodyOf(change));
    expect(after).toEqual({ id: before["id"], ...change });
    expect(await service.ok(`/api/pets/${before["id"]}`)).toEqual(after);
    const { items } = await service.ok("/api/pets?limit=100");
    expect(items).toContainEqual(after);
    const audited = await service.ok(`/api/audit?target=pet:${before["id"]}&limit=1`);
    const [entry] = Array.isArray(audited["items"]) ? audited["items"] : [];
    expect(Object.keys(recordOf(recordOf(entry)["after"])).toSorted()).toEqual(
      Object.keys(change).toSorted(),
    );
  });

  test.each(["ndjson", "csv"])("goes out and in again with %s", async (format) => {
    const [one, other] = [new InProcessCli(), new InProcessCli()];
    one.input = `${toJson({ id: 7n, ...given })}\n`;
    expect(await one.run("import - --keep-ids")).toMatchObject({ code: 0 });
    const { out } = await one.run(`export pets --format ${format}`);
    other.input = out;
    expect(await other.run("import - --keep-ids")).toMatchObject({ code: 0 });
    const again = await other.run("export pets --format ndjson");
    expect(recordOf(parseJson(again.out))).toEqual({ id: 7, ...given });
  });
});

type ListOperation = "listPets" | "listOrders";
type Filters<Id extends ListOperation> = {
  readonly [K in Exclude<keyof PetstoreInput<Id>["query"], "cursor">]-?: string;
};

/** A value of each parameter of a list with which it has some of the items, and a next page. */
const PARAMETERS: { readonly [Id in ListOperation]: Filters<Id> } = {
  listPets: { limit: "2", status: "sold", id: "101,102,103" },
  listOrders: { limit: "2", status: "placed" },
};

describe("every declared parameter of a list", () => {
  const operations = Object.keys(PARAMETERS).flatMap((id) => (isListOperation(id) ? [id] : []));

  test.each(
    operations.flatMap((id) =>
      Object.entries(PARAMETERS[id]).map(([name, value]) => [id, name, value] as const),
    ),
  )("%s?%s=%s has an effect, which the next page keeps", async (id, name, value) => {
    const { path } = OPERATIONS[id];
    const all = await listed.call({ path: `${path}?limit=100` });
    const rest = name === "limit" ? "" : "&limit=1";
    const first = await listed.call({ path: `${path}?${name}=${value}${rest}` });
    const whole =
      name === "limit" ? first : await listed.call({ path: `${path}?${name}=${value}&limit=100` });
    expect(first.status).toBe(200);
    expect(itemsOf(whole.json).length).toBeLessThan(itemsOf(all.json).length);
    const next = /<([^>]+)>; rel="next"/.exec(first.headers.get("link") ?? "")?.[1] ?? "";
    expect(new URL(next).searchParams.get(name)).toBe(value);
    const second = await listed.call({ path: next.slice(listed.url.length) });
    const among = itemsOf(name === "limit" ? all.json : whole.json);
    for (const item of itemsOf(second.json)) expect(among).toContainEqual(item);
    expect(itemsOf(second.json).length).toBeGreaterThan(0);
  });

  beforeAll(async () => {
    for (let i = 0; i < 110; i++) {
      const { json } = await listed.post("/pets", { name: `pet ${i}`, categoryId: i % 3 });
      if (i % 11 === 0)
        await listed.ok(`PATCH /api/pets/${recordOf(json)["id"]}`, { body: { status: "sold" } });
      if (i % 11 === 1) await listed.post("/store/orders", { petId: recordOf(json)["id"] });
    }
    await listed.call({ method: "PATCH", path: "/store/orders/1", body: { status: "completed" } });
  });
});

function isListOperation(id: string): id is ListOperation {
  return id in PARAMETERS;
}

function recordOf(value: unknown): Record<string, unknown> {
  if (typeof value !== "object" || value === null) throw new Error(`not an object: ${String(value)}`);
  return { ...value };
}

function itemsOf(value: unknown): readonly unknown[] {
  if (!Array.isArray(value)) throw new Error(`not an array: ${String(value)}`);
  return value;
}
