import { afterAll, beforeAll, expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { toJson } from "../../../src/api/json.ts";
import { type App, startApp } from "../../../src/app.ts";
import { silentLog } from "../../../src/observe/log.ts";
import { temporaryDirectory } from "../../../trials/harness/cleanup.ts";
import { postgresUrl } from "../../../trials/harness/postgres.ts";
import { ADMIN_CONFIG, type AdminRequest, sendAdmin, sessionOf } from "../../admin/admin-service.ts";
import { configIn } from "../../service.ts";
import { until } from "../../timing.ts";

const dataDirs = [temporaryDirectory("operators-a"), temporaryDirectory("operators-b")];
const files = dataDirs.map((dataDir) => join(dataDir, "production-admin-token"));
let apps: App[];
let token: string;
beforeAll(async () => {
  const databaseUrl = await postgresUrl();
  const admin = { ...ADMIN_CONFIG, token: undefined };
  const start = (dataDir: string) => startApp(configIn(dataDir, { databaseUrl, admin }), { log: silentLog });
  apps = await Promise.all(dataDirs.map(start));
  token = readFileSync(files.find(existsSync) ?? "", "utf8").trim();
}, 60_000);
afterAll(() => Promise.all(apps.map((app) => app.close())));

const send = (n: number, path: string, rest: Partial<AdminRequest> = {}) =>
  sendAdmin(apps[n]?.admin?.url ?? "", { path, token: null, ...rest });
const status = async (...sent: Parameters<typeof send>) => (await send(...sent)).status;
async function post(path: string, body: object = {}) {
  const response = await send(0, path, { method: "POST", token, body });
  if (response.status >= 300) throw new Error(`${path}: ${response.status} ${toJson(response.json)}`);
  return response;
}

/** A change on the first server applies on the second one within a second. */
const untilStatus = (expected: number, sent: Partial<AdminRequest>, withinMs = 1_000) =>
  until(async () => (await status(1, "/api/keys", sent)) === expected, withinMs);

/** What the page of each server sends: cookies have the name of the port. */
function sessionOn(n: number, session: ReturnType<typeof sessionOf>) {
  const { port } = new URL(apps[n]?.admin?.url ?? "");
  return { ...session, Cookie: session.Cookie.replace(/^[^=]+/, `petstore-admin-${port}`) };
}

test("two servers that start together on a fresh database make one operator, whose token works on both", async () => {
  expect(files.filter(existsSync)).toHaveLength(1);
  const found = await Promise.all([0, 1].map((n) => send(n, "/api/operators", { token })));
  for (const { status, json } of found)
    expect([status, json["items"]]).toEqual([
      200,
      [expect.objectContaining({ name: "admin", role: "admin" })],
    ]);
});

test("an operator who is revoked, and a token that is rotated, are out on the other server within a second", async () => {
  for (const action of ["revoke", "rotate"]) {
    const created = await post("/api/operators", { name: `ann-${action}`, role: "viewer" });
    const { token, operator } = Object(created.json);
    // At once: what is not known is looked up.
    expect(await status(1, "/api/keys", { token })).toBe(200);
    await post(`/api/operators/${operator.id}/${action}`);
    expect(await status(0, "/api/keys", { token })).toBe(401);
    await untilStatus(401, { token });
  }
});

test("a session works on both servers, and signing out on one ends it on the other within a second", async () => {
  const session = sessionOf(await post("/api/session", { token }));
  const [own, other] = [session, sessionOn(1, session)];
  expect(await status(1, "/api/keys", { headers: other })).toBe(200);
  const headers = { ...own, Origin: apps[0]?.admin?.url ?? "" };
  expect(await status(0, "/api/session", { method: "DELETE", headers })).toBe(204);
  expect(await status(0, "/api/keys", { headers: own })).toBe(401);
  await untilStatus(401, { headers: other });
});

test("a new role holds for token and session on the other server within a second", async () => {
  const created = Object((await post("/api/operators", { name: "zoe", role: "viewer" })).json);
  const { id } = created.operator;
  const body = { name: "a", plan: "free" };
  const headers = sessionOn(1, sessionOf(await post("/api/session", { token: created.token })));
  const asToken = { token: created.token, method: "POST", body };
  const asSession = { method: "POST", body, headers: { ...headers, Origin: apps[1]?.admin?.url ?? "" } };
  const both = [asToken, asSession];
  for (const [role, expected] of [
    ["admin", 201],
    ["viewer", 403],
  ] as const) {
    expect(await status(0, `/api/operators/${id}`, { method: "PATCH", token, body: { role } })).toBe(200);
    await Promise.all(both.map((sent) => untilStatus(expected, sent)));
  }
  const expiresAt = new Date(Date.now() + 300).toISOString();
  await send(0, `/api/operators/${id}`, { method: "PATCH", token, body: { expiresAt } });
  for (const sent of [{ token: created.token }, { headers }]) await untilStatus(401, sent, 1_300);
});

test("during an overlap both tokens work on both servers, and signing out everywhere ends sessions on both", async () => {
  const created = Object((await post("/api/operators", { name: "yan", role: "viewer" })).json);
  const rotated = await post(`/api/operators/${created.operator.id}/rotate`, { overlapSeconds: 600 });
  const tokens = [created.token, String(rotated.json["token"])];
  for (const n of [0, 1])
    for (const each of tokens) expect(await status(n, "/api/keys", { token: each })).toBe(200);
  const [earlier, newest] = await Promise.all(
    tokens.map(async (each) => sessionOf(await post("/api/session", { token: each }))),
  );
  if (!earlier || !newest) throw new Error("two sessions");
  const headers = { ...newest, Origin: apps[0]?.admin?.url ?? "" };
  expect(await status(0, "/api/sessions", { method: "DELETE", headers })).toBe(204);
  for (const session of [earlier, newest]) await untilStatus(401, { headers: sessionOn(1, session) });
});

test("of two servers that get the same code together, one signs in", async () => {
  const code = new URL((await apps[0]?.admin?.createSignInUrl()) ?? "").searchParams.get("code");
  const signIn = (n: number) => status(n, "/api/session", { method: "POST", body: { code } });
  const statuses = await Promise.all([signIn(0), signIn(1)]);
  expect(statuses.toSorted()).toEqual([200, 401]);
});
