import { beforeAll, expect, test } from "bun:test";
import { parseJson, toJson } from "../../src/api/json.ts";
import { Petstore } from "../../src/client/index.ts";
import type { Variables } from "../../src/config/parse-options.ts";
import { NewPet, Pet } from "../../src/domain/resources.ts";
import { OPERATIONS, type PetstoreInput } from "../../src/petstore/operations.ts";
import type { AdminService } from "../admin/admin-service.ts";
import { InProcessCli } from "../cli/cli.ts";
import { objectWith, samplesOf } from "../samples.ts";

const bodyOf = (object: object) => ({ body: toJson(object) });

/** A sample and the change that makes any pet equal to it. */
const SAMPLES = Object.entries(samplesOf(NewPet)).map(([name, sample]) => ({
  name,
  sample,
  change: { ...Object.fromEntries(NewPet.names.map((field) => [field, null])), ...sample },
}));

/**
 * What a schema declares, clients send and get back: no field is accepted and then ignored. `newDatabase` has the
 * variables of commands on an empty database.
 */
export function declaredFieldCases(service: AdminService, newDatabase: () => Promise<Variables>): void {
  test("the fields that a client sends are all fields of a pet but its identifier", () => {
    expect(Pet.names).toEqual(["id", ...NewPet.names]);
  });

  test.each(SAMPLES)(
    "a pet with $name comes back from createPet, getPet and listPets",
    async ({ sample }) => {
      const response = await service.call({ method: "POST", path: "/pets", ...bodyOf(sample) });
      expect(response.status).toBe(201);
      const created = recordOf(response.json);
      expect(created).toEqual({ id: created["id"], ...sample });
      for (const path of [`/pets/${created["id"]}`, `/pets?id=${created["id"]}`, "/pets?limit=100"]) {
        const { json } = await service.call({ path });
        expect([json].flat()).toContainEqual(created);
      }
    },
  );

  test.each(SAMPLES)("a pet with $name comes back from the client library", async ({ sample }) => {
    const petstore = new Petstore({ key: service.key, baseUrl: service.url });
    const body = NewPet.read(sample);
    if (!("name" in body)) throw new Error("the sample is not valid");
    const pet = await petstore.pets.create(body);
    expect({ ...pet }).toEqual({ id: pet.id, ...body });
    expect(await petstore.pets.byIds([pet.id])).toContainEqual(pet);
  });

  test.each(SAMPLES)("operators add a pet with $name, and change one to it", async ({ sample, change }) => {
    const added = await service.ok("POST /api/pets", bodyOf(sample));
    expect(added).toEqual({ id: added["id"], ...sample });
    const before = await service.ok("POST /api/pets", bodyOf(objectWith(NewPet, 3)));
    const after = await service.ok(`PATCH /api/pets/${before["id"]}`, bodyOf(change));
    expect(after).toEqual({ id: before["id"], ...sample });
    expect(await service.ok(`/api/pets/${before["id"]}`)).toEqual(after);
    const { items } = await service.ok("/api/pets?limit=100");
    expect(items).toContainEqual(after);
    const audited = await service.ok(`/api/audit?target=pet:${before["id"]}&limit=1`);
    const [entry] = Array.isArray(audited["items"]) ? audited["items"] : [];
    expect(Object.keys(recordOf(recordOf(entry)["after"])).toSorted()).toEqual(NewPet.names.toSorted());
  });

  test.each(["ndjson", "csv"])("pets with all of that go out and in again with %s", async (format) => {
    const given = SAMPLES.map(({ sample }, i) => `${toJson({ id: i + 7, ...sample })}\n`).join("");
    const [one, other] = [await newDatabase(), await newDatabase()];
    const cli = new InProcessCli();
    cli.input = given;
    expect(await cli.run("import - --keep-ids", one)).toMatchObject({ code: 0 });
    cli.input = (await cli.run(`export pets --format ${format}`, one)).out;
    expect(await cli.run("import - --keep-ids", other)).toMatchObject({ code: 0 });
    const { out } = await cli.run("export pets --format ndjson", other);
    expect(out.trimEnd().split("\n").map(parseJson)).toEqual(given.trimEnd().split("\n").map(parseJson));
  });
}

type ListOperation = "listPets" | "listOrders";
type Filters<Id extends ListOperation> = {
  readonly [K in Exclude<keyof PetstoreInput<Id>["query"], "cursor">]-?: string;
};

/** A value of each parameter of a list with which it has some of the items, and a next page. */
const PARAMETERS: { readonly [Id in ListOperation]: Filters<Id> } = {
  listPets: { limit: "2", status: "sold", id: "101,102,103" },
  listOrders: { limit: "2", status: "placed" },
};

/** Every declared parameter of a list has an effect. */
export function declaredParameterCases(listed: AdminService): void {
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
}

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
