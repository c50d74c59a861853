import { afterAll, expect, test } from "bun:test";
import {
  ADMIN_OPERATIONS,
  type AdminOperation,
  type AdminOperationId,
} from "../../src/operator/operations.ts";
import type { Awaitable } from "../../src/runtime/awaitable.ts";
import { startIdentityProvider } from "../../trials/harness/identity-provider.ts";
import { startReceiver } from "../../trials/harness/webhook-receiver.ts";
import { sessionOf, startAdminService, TOKEN } from "./admin-service.ts";
import type { TestConfig } from "../service.ts";
import { until } from "../timing.ts";

type Operations = typeof ADMIN_OPERATIONS;
type ChangingId = {
  [Id in AdminOperationId]: Operations[Id]["method"] extends "GET" ? never : Id;
}[AdminOperationId];

/** A call that changes something, and what a reading operation shows afterwards and did not show before. */
interface Change {
  readonly call: () => Promise<unknown>;
  readonly read: () => Promise<unknown>;
  readonly shows: object;
}

/** The cases, each of which makes what it needs. An operation that is audited as `nothing` has nothing to show. */
type Cases = {
  readonly [Id in ChangingId]: Operations[Id] extends { readonly audited: "nothing" }
    ? () => Promise<unknown>
    : () => Awaitable<Change>;
};

/** Tests that each operation that changes something changes it, and is audited as its row says. */
export async function testChangingOperations(config: TestConfig = {}): Promise<void> {
  const receiver = startReceiver();
  const { url } = receiver;
  const webhook = { url, secrets: [new Uint8Array(32)], events: ["data.restored"] };
  const identityProvider = await startIdentityProvider();
  const { issuer, clientId, secret } = identityProvider;
  const provider = { issuer, clientId, secret, rules: [] };
  const service = await startAdminService({ provider }, { webhook, ...config });
  afterAll(async () => {
    await identityProvider[Symbol.asyncDispose]();
    await service.stop();
    await receiver.close();
  });

  const { id: keyId } = await service.newKey({ name: "app" });
  /** What a call sends in addition, and the last body that one has sent. */
  let added: object = {};
  let sent: Record<string, unknown> = {};
  const call = (request: string, body?: object) => () => {
    sent = { ...body, ...added };
    return service.ok(request, Object.keys(sent).length > 0 ? { body: sent } : undefined);
  };
  const get = (path: string) => async () => (await service.admin(path)).json;
  const idOf = (created: Record<string, unknown>) => Number(created["id"]);
  const newPet = async () =>
    idOf(await service.ok("POST /api/pets", { body: { name: "Rex", categoryId: 1 } }));
  const newOperator = async (name: string) => {
    const { operator } = await service.newOperator("viewer", { name });
    return { id: 0, hint: "", ...Object(operator) };
  };
  const operators = get("/api/operators");
  const oneItem = (item: object) => ({ items: expect.arrayContaining([expect.objectContaining(item)]) });
  const key = get(`/api/keys/${keyId}`);

  async function bannedKey(): Promise<number> {
    const { id, secret } = await service.newKey({ limits: { perMinute: 1, perDay: 100 } });
    const request = () => service.call({ path: "/pets", key: secret });
    await request();
    await request();
    for (let strikes = 0; strikes < 10; strikes++) {
      service.clock.advance(1_001);
      await request();
    }
    // A ban is recorded a moment later.
    await until(async () => (await latestEntry())["action"] === "key.banned", 10_000);
    return id;
  }

  async function latestEntry(): Promise<Record<string, unknown>> {
    const { items } = await service.ok("/api/audit?limit=1");
    return Object(Array.isArray(items) ? items[0] : undefined);
  }

  const signIn = async () => sessionOf(await service.signIn({ token: TOKEN }));
  const sessionWith = (headers: Record<string, string>) => async () =>
    (await service.admin({ path: "/api/session", headers, token: null })).json;

  const CASES: Cases = {
    createSession() {
      const headers: Record<string, string> = {};
      const create = async () => Object.assign(headers, await signIn());
      return { call: create, read: () => sessionWith(headers)(), shows: { signedIn: true } };
    },
    async deleteSession() {
      const headers = { ...(await signIn()), Origin: service.adminUrl };
      const end = () => service.ok("DELETE /api/session", { headers, token: null });
      return { call: end, read: sessionWith(headers), shows: { signedIn: false } };
    },
    async deleteSessions() {
      const sessions = [await signIn(), await signIn()].map(sessionWith);
      const read = () => Promise.all(sessions.map((session) => session()));
      const shows = [{ signedIn: false }, { signedIn: false }];
      return { call: call("DELETE /api/sessions"), read, shows };
    },
    createOperator: () => ({
      call: () => newOperator("ann"),
      read: operators,
      shows: oneItem({ name: "ann", role: "viewer", state: "active" }),
    }),
    async updateOperator() {
      const { id } = await newOperator("dan");
      const [role, expiresAt] = ["support", "2027-01-01T00:00:00.000Z"];
      const shows = oneItem({ id, role, expiresAt });
      return { call: call(`PATCH /api/operators/${id}`, { role, expiresAt }), read: operators, shows };
    },
    async rotateOperator() {
      const { id, hint } = await newOperator("bob");
      const shows = oneItem({ id, hint: expect.not.stringContaining(hint) });
      return { call: call(`POST /api/operators/${id}/rotate`), read: operators, shows };
    },
    async revokeOperator() {
      const { id } = await newOperator("eve");
      const shows = oneItem({ id, state: "revoked" });
      return { call: call(`POST /api/operators/${id}/revoke`), read: operators, shows };
    },
    testWebhook: call("POST /api/webhook/test"),
    updatePlan() {
      const limits = { plan: "free", perMinute: 61, perDay: 1_001 };
      return { call: call("PATCH /api/plans", limits), read: get("/api/plans"), shows: oneItem(limits) };
    },
    updateBanRules() {
      const rules = { strikes: 11, graceMs: 1_001, lengthMs: 301_000, maxLengthMs: 2_400_001 };
      return { call: call("PATCH /api/ban-rules", rules), read: get("/api/ban-rules"), shows: rules };
    },
    createKey: () => ({
      call: call("POST /api/keys", { name: "shop", plan: "free" }),
      read: get("/api/keys?search=shop"),
      shows: { items: [{ name: "shop", plan: "free" }] },
    }),
    createSignInCode: async () => expect((await service.admin("POST /api/session/code")).status).toBe(409),
    beginSignIn: call("POST /api/session/provider"),
    findKey: call("POST /api/keys/find", { secret: service.key }),
    updateKey() {
      const names = { name: "shop", owner: "team", notes: "of two", labels: ["one", "two"] };
      const limits = { plan: "enterprise", limits: { perMinute: 70, perDay: 700 }, access: "read" };
      const change = { ...names, ...limits, expiresAt: "2027-01-01T00:00:00.000Z" };
      return { call: call(`PATCH /api/keys/${keyId}`, change), read: key, shows: change };
    },
    rotateKey: () => ({
      call: call(`POST /api/keys/${keyId}/rotate`, {}),
      read: key,
      shows: { secrets: [{ validUntil: null }, { validUntil: expect.any(String) }] },
    }),
    disableKey: () => ({
      call: call(`POST /api/keys/${keyId}/disable`),
      read: key,
      shows: { state: "disabled" },
    }),
    async enableKey() {
      await service.ok(`POST /api/keys/${keyId}/disable`);
      return { call: call(`POST /api/keys/${keyId}/enable`), read: key, shows: { state: "active" } };
    },
    async unbanKey() {
      const id = await bannedKey();
      const shows = { state: "active", bannedUntil: null };
      return { call: call(`POST /api/keys/${id}/unban`), read: get(`/api/keys/${id}`), shows };
    },
    async revokeKey() {
      const { id } = await service.newKey();
      const shows = { state: "revoked" };
      return { call: call(`POST /api/keys/${id}/revoke`), read: get(`/api/keys/${id}`), shows };
    },
    createPet: () => ({
      call: call("POST /api/pets", { name: "Kim", categoryId: 1 }),
      read: get("/api/pets?search=Kim"),
      shows: { items: [{ name: "Kim" }] },
    }),
    async updatePet() {
      const path = `/api/pets/${await newPet()}`;
      const change = { name: "Tom", categoryId: 2, status: "sold" };
      return { call: call(`PATCH ${path}`, change), read: get(path), shows: change };
    },
    async deletePet() {
      const path = `/api/pets/${await newPet()}`;
      return { call: call(`DELETE ${path}`), read: get(path), shows: { code: "pet_not_found" } };
    },
    async updateOrder() {
      const { json } = await service.post("/store/orders", { petId: await newPet() });
      const path = `/api/orders/${idOf(Object(json))}`;
      const status = "completed";
      return { call: call(`PATCH ${path}`, { status }), read: get(path), shows: { status } };
    },
  };

  const changing = Object.entries<AdminOperation>(ADMIN_OPERATIONS).filter(
    ([, { method }]) => method !== "GET",
  );

  test.each(changing)(
    "%s changes what it says, and is audited as its row says",
    async (id, { audited, body }) => {
      added = {};
      const prepare: () => Awaitable<Change> = Reflect.get(CASES, id);
      if (audited === "nothing") {
        const before = await latestEntry();
        await prepare();
        return expect(await latestEntry()).toEqual(before);
      }
      const change = await prepare();
      const before = await latestEntry();
      expect(await change.read()).not.toMatchObject(change.shows);
      const fields = body?.kind === "object" ? body : undefined;
      const hasReason = fields?.names.includes("reason") === true;
      if (hasReason) added = { reason: "leaked in a repository" };
      await change.call();
      expect(await change.read()).toMatchObject(change.shows);
      const after = await latestEntry();
      // An update changes each of its fields, and an entry has the reason that was given.
      expect((fields?.needsOneOf ?? []).filter((name) => !(name in sent))).toEqual([]);
      if (hasReason) expect(after["after"]).toMatchObject(added);
      expect(after["id"]).not.toBe(before["id"]);
      return expect(after["action"]).toBe(audited);
    },
  );
}
