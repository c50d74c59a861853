import { describe, expect, test } from "bun:test";
import { leastRoleOf, mayCall, type Role, ROLES } from "../../src/domain/operators.ts";
import { ADMIN_OPERATIONS, type AdminOperation } from "../../src/operator/operations.ts";
import { generateToken, toNewToken } from "../../src/operator/sign-in/token.ts";
import { codeOf, cookieOf, type NewOperator, sessionOf, useAdminService } from "./admin-service.ts";
import { until } from "../timing.ts";

const OPERATIONS = Object.entries<AdminOperation>(ADMIN_OPERATIONS).filter(([, row]) => !row.needsNoToken);

const service = await useAdminService();

const { newOperator, signIn } = service;
const get = (path: string, headers: Record<string, string>) => service.admin(path, { token: null, headers });
const getStatus = async (path: string, headers: Record<string, string>) => (await get(path, headers)).status;
const status = async (path: string, token: string) => (await service.admin(path, { token })).status;

describe("roles", () => {
  test.each(ROLES.flatMap((role) => OPERATIONS.map(([id]) => [role, id] as const)))(
    "%s and %s: allowed, or 403 forbidden_role, as the table says",
    async (role, id) => {
      const row: AdminOperation = ADMIN_OPERATIONS[id as keyof typeof ADMIN_OPERATIONS];
      const { token, operator } = await operatorWith(role);
      // Nothing has this identifier, and nothing is a valid body: an operation that is allowed is 4xx or a list.
      const path = `/api${row.path.replace(/\{\w+\}/, "999999999")}`;
      const { status: got, json } = await service.admin({ method: row.method, path, token });
      const least = leastRoleOf(row);
      const needed = id === "rotateOperator" ? "admin" : least;
      if (mayCall(role, needed)) expect([200, 204, 400, 404, 409]).toContain(got);
      else {
        expect([got, json["code"]]).toEqual([403, "forbidden_role"]);
        expect(json["message"]).toBe(`This needs the role ${needed}; ${operator.name} has ${role}.`);
      }
    },
  );

  const made = new Map<Role, Promise<NewOperator>>();
  function operatorWith(role: Role): Promise<NewOperator> {
    const operator = made.get(role) ?? newOperator(role);
    made.set(role, operator);
    return operator;
  }

  test("are what the decisions say: who reads, who helps, who does everything", () => {
    const least = (role: Role) =>
      OPERATIONS.filter(([, row]) => leastRoleOf(row) === role && row.method !== "GET").map(([id]) => id);
    expect(least("viewer")).toEqual(["createSignInCode", "deleteSessions", "findKey"]);
    const support = "rotateKey disableKey enableKey unbanKey updatePet updateOrder".split(" ");
    expect(least("support")).toEqual(support);
    const admin =
      "createOperator updateOperator revokeOperator testWebhook createKey updateKey revokeKey updatePlan";
    expect(least("admin")).toEqual([...admin.split(" "), "updateBanRules", "createPet", "deletePet"]);
    expect(least("metrics")).toEqual(["rotateOperator"]);
    for (const [, row] of OPERATIONS) if (row.method === "GET") expect(leastRoleOf(row)).toBe("viewer");
  });

  test.each(ROLES)("%s may read /metrics and see who they are", async (role) => {
    const { token, operator } = await operatorWith(role);
    expect(await status("/metrics", token)).toBe(200);
    const session = await service.ok("/api/session", { token });
    const { id, name } = operator;
    expect(session).toMatchObject({ signedIn: true, operator: { id, name, role } });
  });

  test("metrics can neither sign in nor read the OpenAPI document", async () => {
    const { token } = await operatorWith("metrics");
    expect(await signIn({ token })).toMatchObject({ status: 403, json: { code: "forbidden_role" } });
    expect(await status("/api/openapi.json", token)).toBe(403);
  });

  test("metrics may rotate its token 20 times at once, and 20 times an hour", async () => {
    let { operator, token } = await newOperator("metrics");
    const request = { method: "POST", path: `/api/operators/${operator.id}/rotate` };
    for (const times of [20, 2]) {
      for (let i = 0; i < times; i++) token = String((await service.ok({ ...request, token }))["token"]);
      const blocked = await service.admin({ ...request, token });
      expect(blocked).toMatchObject({ status: 429, json: { code: "too_many_attempts" } });
      expect(blocked.headers.get("retry-after")).toBe("180");
      service.clock.advance(2 * 180_000);
    }
  });

  test("every operator may rotate their own token, and an admin that of everybody", async () => {
    for (const role of ROLES) {
      const { operator, token } = await newOperator(role);
      const path = `/api/operators/${operator.id}/rotate`;
      const { token: next } = await service.ok(`POST ${path}`, { token });
      expect([await status("/metrics", token), await status("/metrics", String(next))]).toEqual([401, 200]);
      await service.ok(`POST ${path}`);
      expect(await status("/metrics", String(next))).toBe(401);
    }
  });
});

describe("operators", () => {
  test("are created with a token that is shown once, listed without it, and named in the audit trail", async () => {
    const { operator, token } = await newOperator("admin", { name: "ann@example.com" });
    expect(token).toMatch(/^pet_admin_[0-9A-Za-z]{43}$/);
    const listed = await service.admin("/api/operators");
    expect(listed.text).not.toContain(token);
    expect(listed.json["items"]).toContainEqual(expect.objectContaining({ ...operator, state: "active" }));
    await service.ok("POST /api/keys", { token, body: { name: "a", plan: "free" } });
    const { items } = await service.ok("/api/audit?operator=ann@example.com");
    const actor = { operator: "ann@example.com", kind: "admin API", name: "127.0.0.1" };
    expect(items).toMatchObject([{ action: "key.created", actor }]);
    const created = [{ action: "operator.created", after: { name: "ann@example.com" } }];
    expect(await service.ok(`/api/audit?target=operator:${operator.id}`)).toMatchObject({ items: created });
  });

  test.each(["token", "server", "", "Ann", "7", "ann smith", "a".repeat(65), "ännä", "-a", 7])(
    "%j is not a name",
    async (name) => {
      const body = { name, role: "viewer" };
      const { status: got, json } = await service.admin("POST /api/operators", { body });
      expect([got, json["code"]]).toEqual([400, "invalid_body"]);
    },
  );

  test("one who is revoked cannot be rotated, and nobody revokes themselves or the last admin", async () => {
    const boss = await newOperator("admin");
    const { operator } = await newOperator("support");
    const revoke = (id: number, by = boss.token) =>
      service.admin(`POST /api/operators/${id}/revoke`, { token: by });
    expect(await revoke(operator.id)).toMatchObject({ status: 200, json: { state: "revoked" } });
    const rotated = await service.admin(`POST /api/operators/${operator.id}/rotate`);
    expect(rotated).toMatchObject({ status: 409, json: { code: "operator_not_active" } });
    expect(await revoke(boss.operator.id)).toMatchObject({ status: 409, json: { code: "own_operator" } });
  });
});

describe("signing in", () => {
  test("a code works once, for five minutes, and names its operator", async () => {
    const { operator } = await newOperator("viewer");
    const code = await codeOf(service, operator.name);
    const response = await signIn({ code });
    expect(response).toMatchObject({ status: 200, json: { operator: { id: operator.id } } });
    expect(await getStatus("/api/keys", sessionOf(response))).toBe(200);
    const invalid = { status: 401, json: { code: "invalid_code" } };
    expect(await signIn({ code })).toMatchObject(invalid);
    const late = await codeOf(service, operator.name);
    service.clock.advance(300_000);
    expect(await signIn({ code: late })).toMatchObject(invalid);
    const inTime = await codeOf(service);
    service.clock.advance(299_999);
    const byAdmin = await signIn({ code: inTime });
    expect(byAdmin).toMatchObject({ status: 200, json: { operator: { name: "bootstrap", role: "admin" } } });
    for (const wrong of ["x", "x".repeat(32)]) expect((await signIn({ code: wrong })).status).toBe(401);
  });

  test("a cookie without the secret, or with that of another session, is worth nothing", async () => {
    const { token } = await newOperator("admin");
    const session = sessionOf(await signIn({ token }));
    const other = sessionOf(await signIn({ token }));
    const { Cookie } = session;
    // A listener on another port of the host gets the cookie, too, but not what belongs to it.
    for (const headers of [{ Cookie }, { ...session, "Petstore-Session": other["Petstore-Session"] }]) {
      for (const path of ["/api/keys", "/api/settings", "/api/openapi.json", "/metrics"])
        expect(await get(path, headers)).toMatchObject({ status: 401, json: { code: "not_signed_in" } });
      const sent = { token: null, headers: { ...headers, Origin: service.adminUrl } };
      const body = { name: "x", plan: "free" };
      expect((await service.admin("POST /api/keys", { ...sent, body })).status).toBe(401);
      await service.admin("DELETE /api/session", { ...sent });
    }
    expect(await getStatus("/api/keys", { "Petstore-Session": session["Petstore-Session"] })).toBe(401);
    expect(await getStatus("/api/keys", session)).toBe(200);
  });

  test("a session lasts 12 hours, survives a restart, and ends with the token", async () => {
    const { operator, token } = await newOperator("admin");
    const session = sessionOf(await signIn({ token }));
    await service.restart();
    // A server that is started again listens on another port.
    const cookie = session.Cookie.replace(/^[^=]+/, `petstore-admin-${new URL(service.adminUrl).port}`);
    const headers = { ...session, Cookie: cookie };
    service.clock.advance(12 * 3_600_000 - 1);
    expect(await getStatus("/api/keys", headers)).toBe(200);
    service.clock.advance(1);
    expect(await getStatus("/api/keys", headers)).toBe(401);
    const again = sessionOf(await signIn({ token }));
    await service.ok(`POST /api/operators/${operator.id}/rotate`);
    expect(await getStatus("/api/keys", again)).toBe(401);
    expect((await signIn({ token })).status).toBe(401);
  });

  test("the session in which operators rotate their own token goes on, their others end", async () => {
    const { operator, token } = await newOperator("support");
    const [one, two] = [sessionOf(await signIn({ token })), sessionOf(await signIn({ token }))];
    const headers = { ...one, Origin: service.adminUrl };
    await service.ok(`POST /api/operators/${operator.id}/rotate`, { token: null, headers });
    const statuses = [await getStatus("/api/keys", one), await getStatus("/api/keys", two)];
    expect(statuses).toEqual([200, 401]);
  });

  test("a token that another server has replaced just now makes neither a session nor another token", async () => {
    const { operator, token } = await newOperator("support");
    expect(await status("/api/keys", token)).toBe(200);
    const by = { actor: { kind: "console" }, at: service.clock.now() } as const;
    await service.app.operators.rotateOperator(operator.id, toNewToken(generateToken()), by);
    // This server reads the operators again after half a second, and the clock stands still.
    expect(await status("/api/keys", token)).toBe(200);
    const rotate = () => service.admin(`POST /api/operators/${operator.id}/rotate`, { token });
    for (const response of [await signIn({ token }), await rotate()])
      expect(response).toMatchObject({ status: 401, json: { code: "invalid_token" } });
  });

  test("a wrong code gets no cookie and is in the audit trail", async () => {
    service.clock.advance(3_600_000);
    const failed = async () =>
      Object(await service.ok("/api/audit?action=admin.sign-in-failed"))["items"].length;
    const before = await failed();
    const response = await signIn({ code: "y".repeat(32) });
    expect(cookieOf(response.headers)).toBe("");
    // No response waits for the entry.
    await until(async () => (await failed()) === before + 1, 5_000);
  });
});
