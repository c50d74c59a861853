import { describe, expect, test } from "bun:test";
import { createSignInUrl } from "../../src/operator/sign-in/code.ts";
import { cookieOf, type NewOperator, sessionOf, useAdminService } from "./admin-service.ts";

const service = await useAdminService();
const MINUTE = 60_000;
const DAY = 86_400_000;

const send = (path: string, token: string, body?: object) =>
  service.admin(path, { token, ...(body && { body }) });
const status = async (token: string, path = "/api/keys") => (await send(path, token)).status;
const update = ({ operator }: NewOperator, body: object) =>
  service.admin(`PATCH /api/operators/${operator.id}`, { body });
const rotate = ({ operator }: NewOperator, body: object, token?: string) =>
  service.admin(`POST /api/operators/${operator.id}/rotate`, { body, ...(token !== undefined && { token }) });
const { newOperator, signIn } = service;
const statusOf = async (session: Record<string, string>, path = "/api/keys") =>
  (await service.admin(path, { token: null, headers: session })).status;
const viewOf = async ({ operator: { id } }: NewOperator) => {
  const { items } = await service.ok("/api/operators");
  return Object(items).find((each: { id: number }) => each.id === id);
};
const entriesOf = async ({ operator }: NewOperator, action: string) =>
  (await service.ok(`/api/audit?target=operator:${operator.id}&action=${action}`))["items"];

describe("roles change", () => {
  test("token and session get a higher role, too, and the audit trail has both", async () => {
    const ann = await newOperator("viewer");
    const session = sessionOf(await signIn({ token: ann.token }));
    const create = () => send("POST /api/keys", ann.token, { name: "a", plan: "free" });
    expect((await create()).status).toBe(403);
    expect(await update(ann, { role: "admin" })).toMatchObject({ status: 200, json: { role: "admin" } });
    expect((await create()).status).toBe(201);
    const who = await service.ok("/api/session", { token: null, headers: session });
    expect(who).toMatchObject({ operator: { role: "admin" } });
    expect(await entriesOf(ann, "operator.updated")).toMatchObject([
      { before: { role: "viewer" }, after: { name: ann.operator.name, role: "admin" } },
    ]);
  });

  test("409 last_admin: one admin without an expiry stays", async () => {
    const { items } = await service.ok("/api/operators");
    const admins = Object(items).filter((each: { role: string }) => each.role === "admin");
    const last = { operator: { id: 1, name: "bootstrap" }, token: "" };
    for (const { id } of admins.slice(1)) await service.ok(`POST /api/operators/${id}/revoke`);
    for (const body of [{ role: "support" }, { expiresAt: service.clock.timeIn(DAY) }]) {
      const message =
        "Operator bootstrap is the last admin whose token does not expire. Create another one first.";
      expect(await update(last, body)).toMatchObject({ status: 409, json: { code: "last_admin", message } });
    }
    // An admin who expires is no other one.
    const { token } = await newOperator("admin", { expiresAt: service.clock.timeIn(DAY) });
    const revoked = await send("POST /api/operators/1/revoke", token);
    expect(revoked).toMatchObject({ status: 409, json: { code: "last_admin" } });
  });

  test.each([{}, { role: "owner" }, { expiresAt: "tomorrow" }, { expiresAt: "2020-01-01T00:00:00Z" }])(
    "400: %j",
    async (body) => {
      const { status: got, json } = await update(await newOperator("viewer"), body);
      expect([got, json["code"]]).toEqual([400, "invalid_body"]);
    },
  );
});

describe("expiry", () => {
  test("a token that has expired, and its sessions, get a 401 that says so, until the expiry is moved", async () => {
    const ann = await newOperator("viewer", { expiresAt: service.clock.timeIn(MINUTE) });
    const session = sessionOf(await signIn({ token: ann.token }));
    service.clock.advance(MINUTE - 1);
    expect([await status(ann.token), await statusOf(session)]).toEqual([200, 200]);
    service.clock.advance(1);
    const at = service.clock.timeIn(0);
    const { name } = ann.operator;
    const message = `The token of ${name} expired at ${at}. An admin makes it valid again: petstore operators update ${name} --expires 90d`;
    const expired = { status: 401, json: { code: "invalid_token", message } };
    expect(await send("/api/keys", ann.token)).toMatchObject(expired);
    expect(await service.admin("/api/keys", { token: null, headers: session })).toMatchObject(expired);
    expect(await signIn({ token: ann.token })).toMatchObject(expired);
    expect(await viewOf(ann)).toMatchObject({ state: "expired", expiresAt: at });
    expect(await rotate(ann, {})).toMatchObject({
      status: 409,
      json: { code: "operator_not_active", message },
    });
    expect((await update(ann, { expiresAt: service.clock.timeIn(DAY) })).status).toBe(200);
    expect([await status(ann.token), await statusOf(session)]).toEqual([200, 200]);
    expect(await update(ann, { expiresAt: null })).toMatchObject({
      json: { expiresAt: null, state: "active" },
    });
    service.clock.advance(2 * DAY);
    expect(await status(ann.token)).toBe(200);
  });

  test("the clock of the machine decides, also after it was set", async () => {
    const ann = await newOperator("viewer", { expiresAt: service.clock.timeIn(DAY) });
    service.clock.step(2 * DAY);
    expect(await status(ann.token)).toBe(401);
    service.clock.step(-2 * DAY);
    expect(await status(ann.token)).toBe(200);
  });

  test("a program that goes on with an expired token locks nobody out, and fills no audit trail", async () => {
    const { token } = await newOperator("metrics", { expiresAt: service.clock.timeIn(MINUTE) });
    service.clock.advance(MINUTE);
    const failed = async () =>
      Object(await service.ok("/api/audit?action=admin.sign-in-failed"))["items"].length;
    const before = await failed();
    for (let i = 0; i < 25; i++) expect(await status(token, "/metrics")).toBe(401);
    expect([await status(token, "/metrics"), await failed()]).toEqual([401, before]);
    expect((await service.admin("/api/keys", { token: "wrong" })).status).toBe(401);
  });

  test("no code is made for an operator who has expired", async () => {
    const ann = await newOperator("viewer", { expiresAt: service.clock.timeIn(MINUTE) });
    const { app, clock } = service;
    clock.advance(MINUTE);
    const options = { url: "", operators: app.operators, clock, operator: ann.operator.name };
    expect(await createSignInUrl({ ...options, madeBy: "admin-url (root)" })).toMatchObject({
      message: `Operator ${ann.operator.name} does not exist, is revoked or has expired.`,
    });
  });
});

describe("rotation with an overlap", () => {
  test("the list shows it, until it ends", async () => {
    const prometheus = await newOperator("metrics");
    const { json } = await rotate(prometheus, { overlapSeconds: 600 });
    const overlapEndsAt = service.clock.timeIn(10 * MINUTE);
    expect(json).toMatchObject({ operator: { overlapEndsAt } });
    service.clock.advance(10 * MINUTE - 1);
    expect(await viewOf(prometheus)).toMatchObject({ overlapEndsAt });
    service.clock.advance(1);
    expect(await viewOf(prometheus)).toMatchObject({ overlapEndsAt: null, state: "active" });
  });

  test("without one the earlier token ends at once, and so do overlaps before; at most 30 days", async () => {
    const ann = await newOperator("viewer");
    await rotate(ann, { overlapSeconds: 600 });
    await rotate(ann, {});
    expect(await status(ann.token)).toBe(401);
    expect((await rotate(ann, { overlapSeconds: 30 * 86_400 + 1 })).status).toBe(400);
  });
});

describe("signing out everywhere", () => {
  test("ends all sessions of the operator and no other, and is in the audit trail", async () => {
    const ann = await newOperator("viewer");
    const [one, two] = [
      sessionOf(await signIn({ token: ann.token })),
      sessionOf(await signIn({ token: ann.token })),
    ];
    const other = sessionOf(await signIn({ token: (await newOperator("viewer")).token }));
    const headers = { ...one, Origin: service.adminUrl };
    const response = await service.admin("DELETE /api/sessions", { token: null, headers });
    expect([response.status, cookieOf(response.headers)]).toEqual([204, ""]);
    const statuses = [await statusOf(one), await statusOf(two), await statusOf(other)];
    expect(statuses).toEqual([401, 401, 200]);
    expect(await status(ann.token)).toBe(200);
    const { items } = await service.ok(`/api/audit?operator=${ann.operator.name}&action=admin.signed-out`);
    expect(items).toMatchObject([{ actor: { kind: "console" }, after: { sessions: 2 } }]);
  });
});

test("the entry of a sign-in by code names who made the code", async () => {
  const { operator, token } = await newOperator("viewer");
  const { app, clock } = service;
  const options = { url: "", operators: app.operators, clock, operator: operator.name };
  const url = await createSignInUrl({ ...options, madeBy: "admin-url (root)" });
  await signIn({ code: String(url).replace("/?code=", "") });
  await signIn({ token });
  const { items } = await service.ok(`/api/audit?operator=${operator.name}&action=admin.signed-in`);
  expect(items).toMatchObject([{ after: null }, { after: { codeMadeBy: "admin-url (root)" } }]);
});
