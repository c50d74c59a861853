import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { type Service, startService } from "../service.ts";

let service: Service;
beforeAll(async () => void (service = await startService()));
afterAll(() => service.stop());

const create = (body: unknown, headers: Record<string, string> = {}) =>
  service.call({ method: "POST", path: "/pets", body, headers });

const errorOf = ({ json }: { json: unknown }) => json as { code: string; message: string; status: number };

describe("createPet", () => {
  test("createPet 201: the pet with its identifier, and its URL in Location", async () => {
    const response = await create({ name: "Rex", categoryId: 7, status: "available" });
    expect(response.status).toBe(201);
    expect(response.json).toEqual({
      id: expect.any(Number),
      name: "Rex",
      categoryId: 7,
      status: "available",
    });
    expect(response.headers.get("location")).toBe(
      `${service.url}/pets/${(response.json as { id: number }).id}`,
    );
  });

  test("createPet 201: a pet without a status has none in any response", async () => {
    const { json } = await create({ name: "Quiet", categoryId: 1 });
    const { id } = json as { id: number };
    expect(json).toEqual({ id, name: "Quiet", categoryId: 1 });
    expect((await service.call({ path: `/pets/${id}` })).json).toEqual({ id, name: "Quiet", categoryId: 1 });
  });

  test("createPet 201: unknown fields are ignored", async () => {
    const { json } = await create({ name: "Rex", categoryId: 7, id: 99, colour: "red", __proto__: 1 });
    expect(Object.keys(json as object)).toEqual(["id", "name", "categoryId"]);
  });

  for (const literal of ["9007199254740993", "-9223372036854775808", "0"]) {
    test(`createPet 201: categoryId ${literal} comes back unchanged`, async () => {
      const response = await create(`{"name":"Big","categoryId":${literal}}`);
      expect(response.status).toBe(201);
      expect(response.text).toContain(`"categoryId":${literal}}`);
      const id = /"id":(\d+)/.exec(response.text)?.[1];
      expect((await service.call({ path: `/pets/${id}` })).text).toBe(response.text);
    });
  }

  for (const [literal, integer] of [
    ["1.0", "1"],
    ["1e3", "1000"],
    ["-0", "0"],
  ]) {
    test(`createPet 201: categoryId ${literal} is the integer ${integer}`, async () => {
      expect((await create(`{"name":"N","categoryId":${literal}}`)).text).toContain(
        `"categoryId":${integer}}`,
      );
    });
  }

  for (const literal of ["1.5", '"1"', "null", "{}", "9223372036854775808", "1e400"]) {
    test(`createPet 400: categoryId ${literal} is not an int64`, async () => {
      const response = await create(`{"name":"N","categoryId":${literal}}`);
      expect(response.status).toBe(400);
      expect(errorOf(response).code).toBe("invalid_body");
      expect(errorOf(response).message).toContain("categoryId");
    });
  }

  for (const [what, name] of [
    ["a number", 5],
    ["null", null],
    ["empty", ""],
    ["only white space", " \t\u00a0"],
    ["with NUL", "a\0b"],
    ["1,025 characters", "x".repeat(1025)],
    ["1,025 code points outside the BMP", "🐕".repeat(1025)],
    ["an array", ["Rex"]],
  ] as const) {
    test(`createPet 400: name ${what}`, async () => {
      const response = await create({ name, categoryId: 1 });
      expect(response.status).toBe(400);
      expect(errorOf(response)).toEqual({
        code: "invalid_body",
        message: expect.stringContaining("name must be"),
        status: 400,
      });
    });
  }

  test("createPet 400: name with a lone surrogate", async () => {
    expect((await create('{"name":"\\ud800","categoryId":1}')).status).toBe(400);
  });

  test("createPet 201: name of 1,024 code points outside the BMP", async () => {
    const name = "🐕".repeat(1024);
    expect((await create({ name, categoryId: 1 })).json).toMatchObject({ name });
  });

  for (const status of ["Sold", null, ["sold"]]) {
    test(`createPet 400: status ${JSON.stringify(status)}`, async () => {
      const response = await create({ name: "Rex", categoryId: 1, status });
      expect(response.status).toBe(400);
      expect(errorOf(response).message).toContain('status must be one of "available", "pending" or "sold"');
    });
  }

  test("createPet 400: every invalid field is reported", async () => {
    const { message } = errorOf(await create({ categoryId: "7", status: "gone" }));
    expect(message).toBe(
      "name is required and must be a string of 1 to 1,024 characters that is not blank and has no NUL or lone " +
        'surrogate; categoryId must be an integer from -2^63 to 2^63 - 1; status must be one of "available", ' +
        '"pending" or "sold".',
    );
  });

  for (const [what, body] of [
    ["an array", "[]"],
    ["a string", '"Rex"'],
    ["null", "null"],
    ["a number", "7"],
  ] as const) {
    test(`createPet 400: the body is ${what}`, async () => {
      expect(errorOf(await create(body)).code).toBe("invalid_body");
    });
  }

  for (const [what, body] of [
    ["cut off", '{"name":"Rex",'],
    ["with a trailing comma", '{"name":"Rex","categoryId":1,}'],
    ["white space", "   "],
    ["with a byte order mark", '\uFEFF{"name":"Rex","categoryId":1}'],
    ["cut off within 16,000 arrays", "[".repeat(16_000)],
    ["invalid UTF-8", new Uint8Array([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d])],
    ["UTF-8 for a surrogate", new Uint8Array([0x22, 0xed, 0xa0, 0x80, 0x22])],
  ] as const) {
    test(`createPet 400: JSON ${what}`, async () => {
      const response = await create(body);
      expect(response.status).toBe(400);
      expect(errorOf(response).code).toBe("invalid_json");
    });
  }

  test("createPet 400: no body at all, whatever the content type", async () => {
    for (const type of ["application/json", "text/plain"]) {
      const response = await service.call({
        method: "POST",
        path: "/pets",
        headers: { "Content-Type": type },
      });
      expect(errorOf(response)).toMatchObject({ code: "invalid_body", status: 400 });
    }
  });

  for (const type of [
    "text/plain",
    "application/x-www-form-urlencoded",
    "application/jsonp",
    "application/json-patch+json",
    "application/json; charset=iso-8859-1",
    'application/json; charset="utf-16"',
    "",
  ]) {
    test(`createPet 415: Content-Type "${type}"`, async () => {
      const response = await create({ name: "Rex", categoryId: 1 }, { "Content-Type": type });
      expect(errorOf(response)).toMatchObject({ code: "unsupported_media_type", status: 415 });
    });
  }

  for (const type of [
    "application/json; charset=utf-8",
    "Application/JSON",
    "application/json ;charset=UTF-8",
    'application/json; charset="utf-8"',
    "application/json; profile=x",
  ]) {
    test(`createPet 201: Content-Type "${type}"`, async () => {
      expect((await create({ name: "Rex", categoryId: 1 }, { "Content-Type": type })).status).toBe(201);
    });
  }

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

  test("createPet 413: one byte over 16 KiB", async () => {
    const start = '{"name":"Rex","categoryId":1,"x":"';
    const body = `${start}${"y".repeat(16_385 - start.length - 2)}"}`;
    expect(body.length).toBe(16_385);
    const response = await create(body);
    expect(errorOf(response)).toMatchObject({ code: "body_too_large", status: 413 });
  });

  test("createPet 201: exactly 16 KiB", async () => {
    const start = '{"name":"Rex","categoryId":1,"x":"';
    const body = `${start}${"y".repeat(16_384 - start.length - 2)}"}`;
    expect(body.length).toBe(16_384);
    expect((await create(body)).status).toBe(201);
  });

  test("createPet 201: a name of 1,024 escaped surrogate pairs, the longest valid body", async () => {
    const response = await create(
      `{"name":"${"\\ud83d\\ude00".repeat(1_024)}","categoryId":-9223372036854775808}`,
    );
    expect(response.json).toMatchObject({ name: "😀".repeat(1_024), categoryId: -9223372036854775808n });
  });

  test("createPet 201: an unknown field nested 8,000 levels deep", async () => {
    const nested = "[".repeat(8_000) + "]".repeat(8_000);
    const response = await create(`{"name":"Rex","more":${nested},"categoryId":9007199254740993}`);
    expect(response.json).toMatchObject({ name: "Rex", categoryId: 9007199254740993n });
  });

  test("createPet 413: streamed past 16 KiB without a length", async () => {
    const chunk = new TextEncoder().encode("z".repeat(10_000));
    const body = new ReadableStream({
      start(controller) {
        for (let i = 0; i < 20; i++) controller.enqueue(chunk);
        controller.close();
      },
    });
    expect((await create(body)).status).toBe(413);
  });
});

describe("getPet", () => {
  for (const id of [
    "01",
    "+1",
    "1.0",
    "abc",
    "9223372036854775808",
    "-9223372036854775809",
    "%zz",
    "%00",
    "1%2f2",
    "1e0",
    " 1",
    "0x1",
    "999999999",
  ]) {
    test(`getPet 404: ${id} is not the identifier of a pet`, async () => {
      const response = await service.call({ path: `/pets/${id}` });
      expect(errorOf(response)).toMatchObject({ code: "pet_not_found", status: 404 });
    });
  }

  test("getPet 200: Deprecation, Sunset and Link", async () => {
    const { json } = await create({ name: "Old", categoryId: 1 });
    const { id } = json as { id: number };
    const { headers, status } = await service.call({ path: `/pets/${id}` });
    expect(status).toBe(200);
    expect(headers.get("deprecation")).toBe("@1794614400");
    expect(headers.get("sunset")).toBe("Thu, 05 Dec 2030 00:00:00 GMT");
    expect(headers.get("link")).toContain(`<${service.url}/pets?id=${id}>; rel="successor-version"`);
    const missing = await service.call({ path: "/pets/9223372036854775807" });
    expect(missing.headers.get("link")).toStartWith(`<${service.url}/pets?id=9223372036854775807>;`);
    const malformed = await service.call({ path: "/pets/%3E%0Ax" });
    expect(malformed.headers.get("link")).toStartWith(`<${service.url}/pets>; rel="successor-version"`);
    expect(headers.get("link")).toContain('rel="deprecation"');
    const docs = /<([^>]*)>; rel="deprecation"/.exec(headers.get("link") ?? "")?.[1] ?? "";
    const page = await (await fetch(docs)).text();
    expect(page).toContain('id="deprecation"');
  });
});
