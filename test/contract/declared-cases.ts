import { expect, test } from "bun:test";
import { parseJson, toJson } from "../../src/api/json.ts";
import { Petstore } from "../../src/client/index.ts";
import type { Variables } from "../../src/config/parse-options.ts";
import type { ResourceField } from "../../src/domain/fields.ts";
import { NewPet, PET_FIELDS } from "../../src/domain/pets-and-orders.ts";
import type { AdminService } from "../admin/admin-service.ts";
import { InProcessCli } from "../cli/cli.ts";
import { objectWith, samplesOf } from "../samples.ts";
import { withServiceValues } from "../pets.ts";

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
  test("the fields that a client sends are all fields of a pet but those that the service sets", () => {
    const given = Object.entries<ResourceField>(PET_FIELDS).filter(([, { setBy }]) => setBy === undefined);
    expect(NewPet.names).toEqual(given.map(([name]) => name));
    expect(NewPet.names).not.toContain("id");
  });

  test.each(SAMPLES)(
    "a pet with $name comes back from createPet, getPet and listPets",
    async ({ sample }) => {
      const response = await service.call({ method: "POST", path: "/pets", ...bodyOf(sample) });
      expect(response.status).toBe(201);
      const created = recordOf(response.json);
      expect(created).toEqual(withServiceValues(sample, created));
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
    expect<object>({ ...pet }).toEqual(withServiceValues(body, pet));
    expect(await petstore.pets.byIds([pet.id])).toContainEqual(pet);
  });

  test.each(SAMPLES)("operators add a pet with $name, and change one to it", async ({ sample, change }) => {
    const added = await service.ok("POST /api/pets", bodyOf(sample));
    expect(added).toEqual(withServiceValues(sample, added));
    const before = await service.ok("POST /api/pets", bodyOf(objectWith(NewPet, 3)));
    const after = await service.ok(`PATCH /api/pets/${before["id"]}`, bodyOf(change));
    expect(after).toEqual(withServiceValues(sample, before));
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

function recordOf(value: unknown): Record<string, unknown> {
  if (typeof value !== "object" || value === null) throw new Error(`not an object: ${String(value)}`);
  return { ...value };
}
