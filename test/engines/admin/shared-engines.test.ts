import { afterAll, beforeAll, expect, test } from "bun:test";
import { type PetstoreServer, startPetstore } from "../../../trials/harness/petstore.ts";
import { postgresUrl } from "../../../trials/harness/postgres.ts";
import { valkeyUrl } from "../../../trials/harness/valkey.ts";
import { adminOperationAt, expectAdminConforms } from "../../admin/conforms.ts";

const TOKEN = "the-token-of-both-servers";
let servers: PetstoreServer[] = [];
let storage: string[];

beforeAll(async () => {
  storage = ["--database-url", await postgresUrl(), "--limits-url", await valkeyUrl()];
  const flags = [...storage, "--port", "0", "--admin-address", "127.0.0.1:0", "--admin-token", TOKEN];
  // On a busy machine Valkey may take longer than the default of 25 ms.
  servers = await Promise.all([0, 1].map(() => startPetstore([...flags, "--limits-timeout", "1s"])));
}, 60_000);
afterAll(() => Promise.all(servers.map(({ stop }) => stop())));

/** Of one of the two servers. */
async function admin(server: number, method: string, path: string, body?: unknown) {
  const response = await fetch(`${servers[server]?.adminUrl}${path}`, {
    method,
    headers: { Authorization: `Bearer ${TOKEN}`, "Content-Type": "application/json" },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  const operation = adminOperationAt(method, path);
  if (operation) expectAdminConforms(operation, { status: response.status, text });
  expect(response.ok ? "" : text).toBe("");
  return text === "" ? {} : JSON.parse(text);
}

const list = async (server: number, key: string) =>
  (await fetch(`${servers[server]?.url}/pets`, { headers: { Authorization: `Bearer ${key}` } })).status;

async function until(isDone: () => Promise<boolean>): Promise<void> {
  while (!(await isDone())) await Bun.sleep(10);
}

test("each server tells its own engines, and is ready", async () => {
  for (const server of [0, 1]) {
    expect(await admin(server, "GET", "/api/server")).toMatchObject({
      database: { kind: "PostgreSQL", state: "available" },
      rateLimiter: { kind: "Valkey", state: "available" },
    });
    const ready = await fetch(`${servers[server]?.adminUrl}/readyz?verbose`);
    expect(await ready.text()).toContain("[+]rate-limiter ok\n");
  }
});

test("what one server does shows on the other: keys, usage in the windows, revocation", async () => {
  const { key, secret } = await admin(0, "POST", "/api/keys", {
    name: "shared",
    plan: "free",
    labels: ["x"],
  });
  expect([await list(0, secret), await list(1, secret), await list(1, secret)]).toEqual([200, 200, 200]);
  const shown = await admin(1, "GET", `/api/keys/${key.id}`);
  expect(shown).toMatchObject({
    name: "shared",
    usage: { minute: { used: 3, limit: 60 }, day: { used: 3 } },
  });
  const { items } = await admin(1, "GET", "/api/keys?search=shared&sort=name");
  expect(items).toMatchObject([{ id: key.id, usage: { minute: { used: 3 } } }]);

  await admin(0, "PATCH", `/api/keys/${key.id}`, { plan: "pro" });
  expect(await admin(1, "GET", `/api/keys/${key.id}`)).toMatchObject({
    plan: "pro",
    limits: { perMinute: 300 },
  });

  await admin(0, "POST", `/api/keys/${key.id}/revoke`);
  expect(await list(0, secret)).toBe(401);
  await until(async () => (await list(1, secret)) === 401);
}, 60_000);

test("the usage history of both servers adds up, and the last use shows", async () => {
  const { key, secret } = await admin(0, "POST", "/api/keys", { name: "counted", plan: "free" });
  const startedAt = Date.now();
  for (const server of [0, 1, 1]) expect(await list(server, secret)).toBe(200);
  const admitted = async (server: number): Promise<number> => {
    const { items } = await admin(server, "GET", `/api/keys/${key.id}/usage?by=hour`);
    return items.reduce((sum: number, row: { admitted: number }) => sum + row.admitted, 0);
  };
  // Servers write it every two seconds.
  await until(async () => (await admitted(0)) === 3);
  expect(await admitted(1)).toBe(3);
  const { lastUsedAt } = await admin(1, "GET", `/api/keys/${key.id}`);
  expect(Date.parse(lastUsedAt)).toBeWithin(startedAt, Date.now() + 1);
}, 60_000);

test("a ban is listed on both servers, is in the audit trail, and ends on both", async () => {
  const limits = { perMinute: 1, perDay: 10 };
  const { key, secret } = await admin(0, "POST", "/api/keys", { name: "greedy", plan: "enterprise", limits });
  const code = async (server: number) => {
    const headers = { Authorization: `Bearer ${secret}` };
    return Object(await (await fetch(`${servers[server]?.url}/pets`, { headers })).json()).code;
  };
  await until(async () => (await code(0)) === "key_banned");
  for (const server of [0, 1]) {
    const bans = async () => Object(await admin(server, "GET", "/api/bans")).items;
    await until(async () => (await bans()).length === 1);
    expect(await bans()).toMatchObject([{ id: key.id, state: "banned", bannedUntil: expect.any(String) }]);
    expect(await admin(server, "GET", "/api/overview")).toMatchObject({ bannedKeys: 1 });
  }
  const { items } = await admin(1, "GET", `/api/audit?target=key:${key.id}&action=key.banned`);
  expect(items).toMatchObject([{ actor: { kind: "server" } }]);
  expect(await admin(1, "POST", `/api/keys/${key.id}/unban`)).toMatchObject({ state: "active", strikes: 0 });
  expect(await admin(0, "GET", "/api/bans")).toMatchObject({ items: [] });
}, 60_000);

test("a session of one server is one of the other, because they have the same token", async () => {
  const signIn = await fetch(`${servers[0]?.adminUrl}/api/session`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ token: TOKEN }),
  });
  const value = /=([\w.-]+);/.exec(signIn.headers.get("set-cookie") ?? "")?.[1];
  const Cookie = `petstore-admin-${new URL(servers[1]?.adminUrl ?? "").port}=${value}`;
  expect((await fetch(`${servers[1]?.adminUrl}/api/keys`, { headers: { Cookie } })).status).toBe(200);
});

test("orders and pets are the same on both, and the audit trail has what either did", async () => {
  const { secret } = await admin(0, "POST", "/api/keys", { name: "orders", plan: "pro" });
  const post = (server: number, path: string, body: object) =>
    fetch(`${servers[server]?.url}${path}`, {
      method: "POST",
      headers: { Authorization: `Bearer ${secret}`, "Content-Type": "application/json" },
      body: JSON.stringify(body),
    }).then((response) => response.json());
  const pet = Object(await post(0, "/pets", { name: "Rex", categoryId: 1 }));
  const order = Object(await post(1, "/store/orders", { petId: pet.id }));
  expect(await admin(0, "PATCH", `/api/orders/${order.id}`, { status: "completed" })).toMatchObject({
    status: "completed",
  });
  expect(await admin(1, "PATCH", `/api/pets/${pet.id}`, { name: "Max" })).toMatchObject({ status: "sold" });
  expect(await admin(0, "GET", `/api/pets/${pet.id}`)).toMatchObject({ name: "Max" });
  const { items } = await admin(0, "GET", `/api/audit?target=pet:${pet.id}`);
  expect(items).toMatchObject([{ action: "pet.updated", after: { name: "Max" } }]);
}, 60_000);
