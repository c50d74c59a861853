import { afterAll, expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { ADMIN_API, type AdminOperation, type AdminOperationId } from "../../src/operator/operations.ts";
import { startReceiver } from "../../trials/harness/webhook-receiver.ts";
import { startAdminService, TOKEN } from "./admin-service.ts";

/** An operation that is in the table works: it is audited as it says, and people can call it. */

type Operations = typeof ADMIN_API.operations;
type ChangingId = {
  [Id in AdminOperationId]: Operations[Id]["method"] extends "GET" ? never : Id;
}[AdminOperationId];

const receiver = startReceiver();
const target = { url: receiver.url, secret: new Uint8Array(32) };
const service = await startAdminService({}, { webhook: { target, events: ["data.restored"] } });
afterAll(async () => {
  await service.stop();
  await receiver.close();
});

const { id: keyId } = await service.newKey({ name: "app" });
const id = (created: Record<string, unknown>) => Number(created["id"]);
const newPet = async () => id(await service.ok("POST /api/pets", { body: { name: "Rex", categoryId: 1 } }));
const newOperator = async (name: string) => {
  const { operator } = await service.ok("POST /api/operators", { body: { name, role: "viewer" } });
  return id(Object(operator));
};

async function bannedKey(): Promise<number> {
  const key = await service.newKey({ limits: { perMinute: 1, perDay: 100 } });
  const request = () => service.call({ path: "/pets", key: key.secret });
  await request();
  await request();
  service.clock.advance(2_000);
  for (let strikes = 0; strikes < 10; strikes++) await request();
  // A ban is recorded a moment later.
  while ((await latestEntry())["action"] !== "key.banned") await Bun.sleep(1);
  return key.id;
}

/** Calls each operation once, so that it changes something. */
const CALLS: { readonly [Id in ChangingId]: () => Promise<unknown> } = {
  createSession: () => service.ok("POST /api/session", { body: { token: TOKEN } }),
  deleteSession: async () => {
    const { headers, json } = await service.admin("POST /api/session", { body: { token: TOKEN } });
    const Cookie = (headers.get("set-cookie") ?? "").split(";")[0] ?? "";
    const session = { Cookie, "Petstore-Session": String(json["secret"]), Origin: service.adminUrl };
    return service.ok("DELETE /api/session", { headers: session, token: null });
  },
  createOperator: () => newOperator("ann"),
  rotateOperator: async () => service.ok(`POST /api/operators/${await newOperator("bob")}/rotate`),
  revokeOperator: async () => service.ok(`POST /api/operators/${await newOperator("eve")}/revoke`),
  testWebhook: () => service.ok("POST /api/webhook/test"),
  updatePlan: () => service.ok("PATCH /api/plans", { body: { plan: "free", perMinute: 61 } }),
  updateBanRules: () => service.ok("PATCH /api/ban-rules", { body: { strikes: 11 } }),
  rotateServerSecret: () => service.ok("POST /api/server-secret/rotate"),
  createKey: () => service.ok("POST /api/keys", { body: { name: "shop", plan: "free" } }),
  findKey: () => service.ok("POST /api/keys/find", { body: { secret: service.key } }),
  updateKey: () => service.ok(`PATCH /api/keys/${keyId}`, { body: { owner: "team" } }),
  rotateKey: () => service.ok(`POST /api/keys/${keyId}/rotate`, { body: {} }),
  disableKey: () => service.ok(`POST /api/keys/${keyId}/disable`),
  enableKey: () => service.ok(`POST /api/keys/${keyId}/enable`),
  unbanKey: async () => service.ok(`POST /api/keys/${await bannedKey()}/unban`),
  revokeKey: () => service.ok(`POST /api/keys/${keyId}/revoke`),
  createPet: newPet,
  updatePet: async () => service.ok(`PATCH /api/pets/${await newPet()}`, { body: { name: "Tom" } }),
  deletePet: async () => service.ok(`DELETE /api/pets/${await newPet()}`),
  updateOrder: async () => {
    const { json } = await service.post("/store/orders", { petId: await newPet() });
    return service.ok(`PATCH /api/orders/${id(Object(json))}`, { body: { status: "completed" } });
  },
};

async function latestEntry(): Promise<Record<string, unknown>> {
  const { items } = await service.ok("/api/audit?limit=1");
  return Object(Array.isArray(items) ? items[0] : undefined);
}

const changing = Object.entries<AdminOperation>(ADMIN_API.operations).filter(
  ([, { method }]) => method !== "GET",
);

test.each(changing)("%s is audited as its row says", async (operation, { audited }) => {
  const before = await latestEntry();
  await Reflect.get(CALLS, operation)();
  const after = await latestEntry();
  expect(after["id"] === before["id"]).toBe(audited === "nothing");
  if (audited !== "nothing") expect(after["action"]).toBe(audited);
});

/** Called by a name that is put together: `${verb}Key`. */
const BY_VERB = { disableKey: "keys disable", enableKey: "keys enable", unbanKey: "keys unban" };

/** Why no command, or no page, calls an operation. */
const WITHOUT: { readonly [front: string]: { readonly [Id in AdminOperationId]?: string } } = {
  cli: {
    createSession: "a command sends its token",
    deleteSession: "a command sends its token",
    getOverview: "live plots are for the console; `usage` and `servers list` have the figures",
    getSettings: "`doctor` shows the settings of this machine",
    listBans: "`keys list --state banned` shows them",
    proveServer: "servers and commands call it among themselves",
    ...BY_VERB,
  },
  console: {
    getUsage: "the overview has the keys with the most requests",
    listBans: "the list of keys shows them by their state",
    proveServer: "servers and commands call it among themselves",
    rotateServerSecret: "it is part of restoring a database, on the command line",
    enableKey: BY_VERB.enableKey,
    unbanKey: BY_VERB.unbanKey,
  },
};

const source = (directory: string) => {
  const root = resolve(import.meta.dir, "../../src", directory);
  const files = readdirSync(root, { recursive: true, encoding: "utf8" }).filter((name) =>
    /\.tsx?$/.test(name),
  );
  return files.map((name) => readFileSync(join(root, name), "utf8")).join("\n");
};

test.each(Object.entries(WITHOUT))(
  "src/%s calls every operation, or a reason says why not",
  (front, without) => {
    const text = source(front);
    const uncalled = Object.keys(ADMIN_API.operations).filter(
      (operation) => !text.includes(`"${operation}"`),
    );
    expect(uncalled.toSorted()).toEqual(Object.keys(without).toSorted());
  },
);
