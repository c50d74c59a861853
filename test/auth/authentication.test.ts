import { afterAll, beforeAll, expect, test } from "bun:test";
import { generateSecret } from "../../src/domain/api-keys.ts";
import { DEFAULT_PLANS } from "../../src/domain/plans.ts";
import { type Service, startService } from "../service.ts";

let service: Service;
beforeAll(async () => void (service = await startService()));
afterAll(() => service.stop());

const REALM = 'Bearer realm="petstore"';
const get = (headers: Record<string, string>) => service.call({ path: "/pets", key: null, headers });

test("any 401 missing_api_key: no Authorization", async () => {
  const reply = await get({});
  expect(reply.json).toMatchObject({ code: "missing_api_key", status: 401 });
  expect(reply.headers.get("www-authenticate")).toBe(REALM);
});

test("any 401 invalid_api_key: a key that was never issued", async () => {
  const reply = await get({ Authorization: `Bearer ${generateSecret("production")}` });
  expect(reply.json).toMatchObject({ code: "invalid_api_key", status: 401 });
  expect(reply.headers.get("www-authenticate")).toBe(`${REALM}, error="invalid_token"`);
});

test("listPets 200: the scheme in another spelling", async () => {
  expect((await get({ Authorization: `BeArEr ${service.key}` })).status).toBe(200);
});

test("any 401: from the millisecond at which a key expires", async () => {
  const { secret } = await service.newKey({ expiresAt: service.clock.now() + 1000 });
  const call = () => service.call({ path: "/pets", key: secret });
  expect((await call()).status).toBe(200);
  service.clock.advance(999);
  expect((await call()).status).toBe(200);
  service.clock.advance(1);
  expect((await call()).json).toMatchObject({ code: "invalid_api_key" });
});

test("any 401: without a key no path or method shows whether it exists", async () => {
  for (const [method, path] of [
    ["GET", "/nothing"],
    ["DELETE", "/pets"],
    ["OPTIONS", "/pets"],
    ["POST", "/pets"],
    ["HEAD", "/pets"],
    ["GET", ""],
  ] as const) {
    expect((await service.call({ method, path, key: null })).status).toBe(401);
  }
});

test("any 401: counts against the limits of the address, and 429 beyond them", async () => {
  const own = await startService({
    plans: {
      ...DEFAULT_PLANS,
      anonymous: { perMinute: 5, perDay: 100 },
    },
  });
  const statuses: number[] = [];
  for (let i = 0; i < 7; i++) statuses.push((await own.call({ path: "/pets", key: null })).status);
  expect(statuses).toEqual([401, 401, 401, 401, 401, 429, 429]);
  expect((await own.call({ path: "/pets" })).status).toBe(200);
  await own.stop();
});
