import { afterAll, beforeAll, expect, test } from "bun:test";
import { type AdminService, startAdminService } from "./admin-service.ts";

let service: AdminService;
beforeAll(async () => void (service = await startAdminService()));
afterAll(() => service.stop());

interface IssuedKey {
  readonly key: { readonly id: number };
  readonly secret: string;
}

async function newKey(fields: Record<string, unknown> = { plan: "free" }): Promise<IssuedKey> {
  return Object(await service.ok({ method: "POST", path: "/api/keys", body: { name: "shared", ...fields } }));
}
const write = (method: string, path: string, body: unknown = {}) => service.admin({ method, path, body });
const auditOf = async (id: number, action: string) =>
  Object(await service.ok({ path: `/api/audit?target=key:${id}&action=${action}` })).items;
const statusWith = async (secret: string) =>
  (await fetch(`${service.url}/pets`, { headers: { Authorization: `Bearer ${secret}` } })).status;

test("one operator moves an Enterprise key to Free, the other changes its limits: no limits stay behind", async () => {
  const limits = { perMinute: 5_000, perDay: 50_000 };
  for (let round = 0; round < 5; round++) {
    const { key } = await newKey({ plan: "enterprise", limits });
    const path = `/api/keys/${key.id}`;
    await Promise.all([
      write("PATCH", path, { plan: "free" }),
      write("PATCH", path, { limits: { perMinute: 9_000, perDay: 90_000 } }),
    ]);
    expect(await service.ok({ path })).toMatchObject({ plan: "free", limits: { perMinute: 60 } });
    // It would come back with the plan.
    const back = await write("PATCH", path, { plan: "enterprise" });
    expect([back.status, back.json["message"]]).toEqual([
      400,
      "limits must be given for the enterprise plan: each key has its own limits.",
    ]);
  }
});

test("of the secrets of ten rolls at once without overlap, one works, and all are in the audit trail", async () => {
  const { key, secret } = await newKey();
  const rolled = await Promise.all(
    Array.from({ length: 10 }, () => write("POST", `/api/keys/${key.id}/roll`, { overlapSeconds: 0 })),
  );
  const statuses = await Promise.all(rolled.map(({ json }) => statusWith(String(json["secret"]))));
  expect(statuses.toSorted()).toEqual([200, ...Array(9).fill(401)]);
  expect(await statusWith(secret)).toBe(401);
  expect(await auditOf(key.id, "key.rolled")).toHaveLength(10);
});

test("a key is revoked while it is changed, rolled and unbanned: it stays revoked", async () => {
  for (let round = 0; round < 5; round++) {
    const { key, secret } = await newKey();
    const path = `/api/keys/${key.id}`;
    const writes = [
      () => write("POST", `${path}/revoke`),
      () => write("PATCH", path, { plan: "pro", expiresAt: "2099-01-01T00:00:00Z" }),
      () => write("POST", `${path}/roll`),
      () => write("POST", `${path}/unban`),
    ];
    const results = await Promise.all((round % 2 ? writes : writes.toReversed()).map((send) => send()));
    expect(results.filter(({ status }) => status !== 200 && status !== 409)).toEqual([]);
    expect(await service.ok({ path })).toMatchObject({ state: "revoked" });
    const secrets = results.flatMap(({ json }) =>
      json["secret"] === undefined ? [] : String(json["secret"]),
    );
    for (const each of [secret, ...secrets]) expect(await statusWith(each)).toBe(401);
  }
});
