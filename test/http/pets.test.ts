import { expect, test } from "bun:test";
import { useService } from "../service.ts";
import { withServiceValues } from "../pets.ts";

const service = await useService();

const create = (body: unknown, headers: Record<string, string> = {}) =>
  service.post("/pets", body, { headers });
const createIn = (categoryId: string) => create(`{"name":"Rex","categoryId":${categoryId}}`);
const REX = { name: "Rex", categoryId: 1 };
/** A body of this many bytes. */
const padded = (bytes: number) => `${JSON.stringify(REX).slice(0, -1)},"x":"${"y".repeat(bytes - 36)}"}`;

test("createPet 201: unknown fields are ignored, and a pet without a status has none in any response", async () => {
  const { json } = await create({ ...REX, id: 99, colour: "red", __proto__: 1 });
  const pet = json as { id: number };
  expect(pet.id).not.toBe(99);
  expect<object>(pet).toStrictEqual(withServiceValues(REX, pet));
  expect((await service.call({ path: `/pets/${pet.id}` })).json).toStrictEqual(pet);
});

test.each([
  ["9007199254740993", "9007199254740993"],
  ["-9223372036854775808", "-9223372036854775808"],
  ["1.0", "1"],
  ["1e3", "1000"],
  ["-0", "0"],
])("createPet 201: categoryId %s is the integer %s", async (literal, integer) => {
  const { text } = await createIn(literal);
  expect(text).toMatch(new RegExp(`,"categoryId":${integer}[,}]`));
  expect((await service.call({ path: `/pets/${/\d+/.exec(text)?.[0]}` })).text).toBe(text);
});

test.each([
  ["cut off within 16,000 arrays", "[".repeat(16_000)],
  ["UTF-8 for a surrogate", new Uint8Array([0x22, 0xed, 0xa0, 0x80, 0x22])],
])("createPet 400: JSON %s", async (_, body) => {
  expect((await create(body)).json).toMatchObject({ code: "invalid_json", status: 400 });
});

test.each([
  [415, "application/jsonp"],
  [415, "application/json-patch+json"],
  [415, "application/json; charset=iso-8859-1"],
  [415, 'application/json; charset="utf-16"'],
  [415, ""],
  [201, "Application/JSON"],
  [201, "application/json ;charset=UTF-8"],
  [201, 'application/json; charset="utf-8"'],
  [201, "application/json; profile=x"],
])('createPet %d: Content-Type "%s"', async (status, type) => {
  expect((await create(REX, { "Content-Type": type })).status).toBe(status);
});

test.each([
  [{ "Content-Type": "application/json; charset=utf-16" }, "The charset utf-16 is not supported."],
  [{ "Content-Type": 'application/json; charset="<b>"' }, "The charset is not supported."],
  [{ "Content-Encoding": "gzip" }, "The Content-Encoding gzip is not supported."],
])("createPet 415: the message names what is not supported in %p", async (headers, message) => {
  const { json } = await create(REX, headers);
  expect(json).toMatchObject({ code: "unsupported_media_type", message: expect.stringContaining(message) });
});

test("createPet 201: the Content-Encoding identity is none", async () => {
  expect((await create(REX, { "Content-Encoding": "Identity" })).status).toBe(201);
});

test("createPet: a body of 16 KiB is read, one byte more is 413, also without a length", async () => {
  expect(padded(16_384)).toHaveLength(16_384);
  expect((await create(padded(16_384))).status).toBe(201);
  const stream = new Response(padded(16_385)).body;
  for (const body of [padded(16_385), stream])
    expect((await create(body)).json).toMatchObject({ code: "body_too_large", status: 413 });
});

test("createPet 201: a name of 1,024 escaped surrogate pairs, the longest valid body", async () => {
  const escaped = "\\ud83d\\ude00".repeat(1_024);
  const response = await create(`{"name":"${escaped}","categoryId":-9223372036854775808}`);
  expect(response.json).toMatchObject({ name: "😀".repeat(1_024), categoryId: -9223372036854775808n });
});

test("a small request does not wait for large bodies that arrived before it", async () => {
  // Invalid, so that no response waits for the disk.
  const large = `{"x":[${'{"999":0},'.repeat(1_600)}0]}`;
  const finished: string[] = [];
  const creates = Array.from({ length: 150 }, () => create(large).then(() => finished.push("large")));
  await Promise.race(creates);
  await service.call({ path: "/pets?limit=1" }).then(() => finished.push("small"));
  await Promise.all(creates);
  expect(finished.indexOf("small")).toBeLessThan(75);
});

test.each(["+1", "1.0", "abc", "-9223372036854775809", "%zz", "%00", "1%2f2", " 1", "999999999"])(
  "getPet 404: %s is not the identifier of a pet",
  async (id) => {
    const response = await service.call({ path: `/pets/${id}` });
    expect(response.json).toMatchObject({ code: "pet_not_found", status: 404 });
  },
);

test("getPet: Link names the successor of this request and a section of the documentation", async () => {
  const linkTo = async (id: string) =>
    (await service.call({ path: `/pets/${id}` })).headers.get("link") ?? "";
  const link = await linkTo("9223372036854775807");
  expect(link).toStartWith(`<${service.url}/pets?id=9223372036854775807>; rel="successor-version"`);
  expect(link).toContain(`<${service.url}/pets?status=available>; rel="successor-version"`);
  expect(await linkTo("%3E%0Ax")).toStartWith(`<${service.url}/pets>; rel="successor-version"`);
  const docs = /<([^>]*)>; rel="deprecation"/.exec(link)?.[1] ?? "";
  expect(await (await fetch(docs)).text()).toContain('id="deprecation"');
});
