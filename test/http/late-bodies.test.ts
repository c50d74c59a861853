import { expect, test } from "bun:test";
import { bearer } from "../bearer.ts";
import { useAdminService } from "../admin/admin-service.ts";
import { startRequest } from "./raw.ts";

const service = await useAdminService();
const PET = { name: "Rex", categoryId: 1 };
const pets = async () => (await service.call({ path: "/pets" })).text;

interface Late {
  readonly path?: string;
  readonly method?: string;
  readonly body?: unknown;
  readonly headers?: Record<string, string>;
}

/** A request whose key the change meets between its head and the rest of its body, and the same one afterwards. */
async function meanwhile(
  change: (keyId: number, secret: string) => unknown,
  { method = "POST", path = "/pets", body = PET, headers = {} }: Late = {},
) {
  const { id, secret } = await service.newKey();
  const sent = { method, body, headers: { ...bearer(secret), ...headers } };
  const finish = await startRequest(service.url, { ...sent, path: `/v1${path}` });
  await change(id, secret);
  const late = await finish();
  const fresh = await service.call({ ...sent, path, key: null });
  return { late, fresh, id };
}

const CHANGES: readonly [string, (keyId: number) => unknown, number][] = [
  ["revoked", (id) => service.ok(`POST /api/keys/${id}/revoke`), 401],
  ["disabled", (id) => service.ok(`POST /api/keys/${id}/disable`), 401],
  [
    "expired",
    async (id) => {
      const expiresAt = service.clock.timeIn(1_000);
      await service.ok(`PATCH /api/keys/${id}`, { body: { expiresAt } });
      service.clock.advance(1_000);
    },
    401,
  ],
  [
    "rotated, and the overlap is over",
    async (id) => {
      await service.ok(`POST /api/keys/${id}/rotate`, { body: { overlapSeconds: 5 } });
      service.clock.advance(5_000);
    },
    401,
  ],
  ["narrowed to read", (id) => service.ok(`PATCH /api/keys/${id}`, { body: { access: "read" } }), 403],
];

test.each(CHANGES)(
  "a key that is %s while the body arrives is rejected as in a new request, and nothing is done",
  async (_, change, status) => {
    const before = await pets();
    const { late, fresh, id } = await meanwhile(change);
    expect([late.status, late.body]).toEqual([status, fresh.text]);
    expect(fresh.status).toBe(status);
    expect(late.headers["www-authenticate"] ?? null).toBe(fresh.headers.get("www-authenticate"));
    expect(await pets()).toBe(before);
    // It was counted once, by the key, and says so.
    const { usage } = await service.ok(`/api/keys/${id}`);
    const counted = status === 401 ? 1 : 2;
    expect(usage).toMatchObject({ minute: { used: counted } });
    expect(late.headers["x-ratelimit-limit"]).toBe("1000000000");
    expect(late.headers["x-ratelimit-remaining"]).toBe("999999999");
  },
);

const revoke = (id: number) => service.ok(`POST /api/keys/${id}/revoke`);

test.each([
  ["a body that is invalid", { body: { name: 5 } }],
  ["a body that is handled in an iteration of its own", { body: { ...PET, unknown: "x".repeat(3_000) } }],
  ["an order", { path: "/store/orders", body: { petId: 1 } }],
  ["an order that is changed", { method: "PATCH", path: "/store/orders/1", body: { status: "completed" } }],
] as const)("a key that is revoked while the body arrives is 401: %s", async (_, request) => {
  const { late, fresh } = await meanwhile(revoke, request);
  expect([late.status, late.body]).toEqual([401, fresh.text]);
});
test("createPet 401: a revoked key gets no earlier response by its Idempotency-Key", async () => {
  const headers = { "Idempotency-Key": "one" };
  const create = (_: number, key: string) => service.post("/pets", PET, { key, headers });
  const replayed = await meanwhile(create, { headers });
  expect(replayed.late.headers["idempotent-replayed"]).toBe("true");
  const { late } = await meanwhile(
    async (id, key) => {
      expect((await create(id, key)).status).toBe(201);
      await revoke(id);
    },
    { headers },
  );
  expect([late.status, late.headers["idempotent-replayed"]]).toEqual([401, undefined]);
});

test("createPet 201: a key that is changed in another way goes on, and one that is enabled again", async () => {
  const changes = [
    (id: number) => service.ok(`PATCH /api/keys/${id}`, { body: { plan: "free" } }),
    (id: number) => service.ok(`POST /api/keys/${id}/rotate`),
    async (id: number) => {
      await service.ok(`POST /api/keys/${id}/disable`);
      await service.ok(`POST /api/keys/${id}/enable`);
    },
  ];
  for (const change of changes) expect((await meanwhile(change)).late.status).toBe(201);
});
