import { afterAll, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { roleRules } from "../../src/config/sign-in-types.ts";
import { generateSecret } from "../../src/domain/secrets.ts";
import type { AdminErrorCode } from "../../src/operator/errors.ts";
import { toNewToken } from "../../src/operator/sign-in/token.ts";
import type { ErrorCode } from "../../src/petstore/errors.ts";
import { DAY_MS, HOUR_MS, MINUTE_MS } from "../../src/text/time-units.ts";
import { ROLE_RULES, startIdentityProvider } from "../../trials/harness/identity-provider.ts";
import {
  type AdminResponse,
  type AdminService,
  codeOf,
  sessionOf,
  startAdminService,
  TOKEN,
} from "../admin/admin-service.ts";
import type { ApiResponse } from "../service.ts";

/*
 * The messages of errors that say what to do. Each case makes the service send one and does what it says, which must
 * not be rejected.
 */

const provider = await startIdentityProvider();
afterAll(() => provider[Symbol.asyncDispose]());
const { issuer, clientId, secret } = provider;
const rules = roleRules.parse(ROLE_RULES.join(",")) ?? [];

const says = (response: Pick<AdminResponse | ApiResponse, "json">, advice: string) =>
  expect(Object(response.json)["message"]).toContain(advice);

async function begin(on: AdminService) {
  const { url, ...secrets } = await on.ok("POST /api/session/provider", { token: null });
  return { url: String(url), secrets };
}
async function signInWithProvider(on: AdminService, login = "bob") {
  const { url, secrets } = await begin(on);
  return on.signIn({ provider: { response: await provider.logIn(url, login), ...secrets } });
}
const headersOf = (on: AdminService, response: AdminResponse) => ({
  token: null,
  headers: { ...sessionOf(response), Origin: on.adminUrl },
});
const makeCode = async (on: AdminService, session: ReturnType<typeof headersOf>) =>
  String((await on.ok("POST /api/session/code", session))["code"]);
const redeem = (on: AdminService, code: string) => on.signIn({ code, credential: "token" });
const by = (on: AdminService) => ({ actor: { kind: "console" }, at: on.clock.now() }) as const;
const OK = { status: 200 };
type Follow = (on: AdminService) => Promise<void>;

/** The advice of a code, by what it says; and how many rejections of `src` have the code. */
interface Messages {
  readonly rejections: number;
  readonly advice: Readonly<Record<string, Follow>>;
}

const none = (rejections: number): Messages => ({ rejections, advice: {} });
const orderPet = async (on: AdminService) => {
  const pet = await on.newPet();
  const order = await on.post("/store/orders", { petId: pet });
  return { pet, order: Number(Object(order.json)["id"]), etag: order.headers.get("etag") ?? "" };
};

const ADVICE: Readonly<Record<AdminErrorCode | ErrorCode, Messages>> = {
  not_signed_in: {
    rejections: 2,
    advice: {
      async "open the URL that petstore admin-url prints, or send the token of an operator"(on) {
        says(await on.admin("/api/keys", { token: null }), "open the URL that petstore admin-url prints");
        expect(await on.signIn({ code: await codeOf(on) })).toMatchObject(OK);
        expect(await on.admin("/api/keys", { token: TOKEN })).toMatchObject(OK);
      },
      async "The console makes a new code on its page of settings; run petstore login with it."(on) {
        const session = headersOf(on, await signInWithProvider(on));
        const token = String((await redeem(on, await makeCode(on, session))).json["token"]);
        await on.ok("DELETE /api/session", { token });
        says(await on.admin("/api/keys", { token }), "The console makes a new code");
        expect(await redeem(on, await makeCode(on, session))).toMatchObject(OK);
      },
    },
  },
  invalid_token: {
    rejections: 4,
    advice: {
      async "petstore admin-url prints a URL to sign in with"(on) {
        says(await on.signIn({ token: "wrong" }), "petstore admin-url prints a URL to sign in with.");
        expect(await on.signIn({ code: await codeOf(on) })).toMatchObject(OK);
      },
      async "petstore operators update --expires"(on) {
        const { operator, token } = await on.newOperator("viewer", { expiresAt: on.clock.timeIn(MINUTE_MS) });
        on.clock.advance(MINUTE_MS);
        says(
          await on.admin("/api/keys", { token }),
          `petstore operators update ${operator.name} --expires 90d`,
        );
        const body = { expiresAt: on.clock.timeIn(90 * DAY_MS) };
        await on.ok(`PATCH /api/operators/${operator.id}`, { body });
        expect(await on.admin("/api/keys", { token })).toMatchObject(OK);
      },
      async "Sign in again with the provider"(on) {
        const session = headersOf(on, await signInWithProvider(on));
        on.clock.advance(12 * HOUR_MS);
        says(await on.admin("/api/keys", session), "Sign in again with the provider.");
        expect(await signInWithProvider(on)).toMatchObject(OK);
      },
      async "Make another one"(on) {
        const give = (token: string) =>
          on.app.operators.importOperator({ name: "metrics", role: "metrics" }, toNewToken(token), by(on));
        says({ json: await give(TOKEN) }, "Make another one.");
        expect(await give("another-token-of-the-metrics")).toMatchObject({ name: "metrics" });
      },
      async "Use the new one"(on) {
        const { operator, token } = await on.newOperator("support");
        expect(await on.admin("/api/keys", { token })).toMatchObject(OK);
        // Another server has rotated it.
        const next = "the-next-token-of-the-operator";
        await on.app.operators.rotateOperator(operator.id, toNewToken(next), by(on));
        const rotate = (as: string) =>
          on.admin(`POST /api/operators/${operator.id}/rotate`, { token: as, body: {} });
        says(await rotate(token), "Use the new one.");
        on.clock.advance(1_000);
        expect(await rotate(next)).toMatchObject(OK);
      },
    },
  },
  invalid_code: {
    rejections: 3,
    advice: {
      async "petstore admin-url prints a new one"(on) {
        says(await on.signIn({ code: "used" }), "petstore admin-url prints a new one.");
        expect(await on.signIn({ code: await codeOf(on) })).toMatchObject(OK);
      },
      async "The console makes a new one on its page of settings"(on) {
        const session = headersOf(on, await signInWithProvider(on));
        const code = await makeCode(on, session);
        await redeem(on, code);
        says(await redeem(on, code), "The console makes a new one on its page of settings.");
        expect(await redeem(on, await makeCode(on, session))).toMatchObject(OK);
      },
      async "Run petstore login, and paste the code there"(on) {
        const code = await makeCode(on, headersOf(on, await signInWithProvider(on)));
        says(await on.signIn({ code }), "Run petstore login with the URL of the server");
        expect(await redeem(on, code)).toMatchObject(OK);
      },
    },
  },
  rejected_sign_in: {
    rejections: 1,
    advice: {
      async "Sign in again; the audit trail says what was wrong"(on) {
        const { secrets } = await begin(on);
        const response = `?code=wrong&state=${Reflect.get(secrets, "state")}`;
        says(await on.signIn({ provider: { response, ...secrets } }), "Sign in again; the audit trail says");
        const { items } = await on.ok("/api/audit?action=admin.sign-in-failed");
        expect(items).toMatchObject([{ after: { reason: expect.any(String) } }]);
        expect(await signInWithProvider(on)).toMatchObject(OK);
      },
    },
  },
  sign_in_not_allowed: {
    rejections: 1,
    advice: {
      async "An operator with the role admin can see more in the audit trail"(on) {
        says(await signInWithProvider(on, "eve"), "can see more in the audit trail.");
        const { items } = await on.ok("/api/audit?action=admin.sign-in-failed");
        expect(items).toMatchObject([{ after: { email: "eve@example.com" } }]);
      },
    },
  },
  forbidden_role: none(1),
  replaced_token: {
    rejections: 1,
    advice: {
      async "Use the new token"(on) {
        const { operator, token } = await on.newOperator("admin");
        const body = { overlapSeconds: 600 };
        const next = await on.ok(`POST /api/operators/${operator.id}/rotate`, { body });
        says(await on.admin("DELETE /api/sessions", { token }), "Use the new token.");
        await on.ok("DELETE /api/sessions", { token: String(next["token"]) });
      },
    },
  },
  forbidden_host: none(1),
  forbidden_origin: none(1),
  operator_not_found: none(2),
  key_not_found: none(4),
  pet_not_found: none(1),
  order_not_found: none(1),
  operator_exists: none(1),
  operator_not_active: {
    rejections: 2,
    advice: {
      async "An admin lets them in again: petstore operators create"(on) {
        const { operator } = await on.newOperator("support");
        await on.ok(`POST /api/operators/${operator.id}/revoke`);
        const rotated = await on.admin(`POST /api/operators/${operator.id}/rotate`, { body: {} });
        says(rotated, `petstore operators create --name ${operator.name} --role support`);
        const body = { name: operator.name, role: "support" };
        const { token } = await on.ok("POST /api/operators", { body });
        expect(await on.admin("/api/keys", { token: String(token) })).toMatchObject(OK);
      },
      async "the same for a person of the provider"(on) {
        const { json } = await signInWithProvider(on);
        const { id, name } = Object(json["operator"]);
        await on.ok(`POST /api/operators/${id}/revoke`);
        says(await signInWithProvider(on), `petstore operators create --name ${name} --role viewer`);
        await on.ok("POST /api/operators", { body: { name, role: "viewer" } });
        expect(await signInWithProvider(on)).toMatchObject(OK);
      },
      async "petstore operators update --expires"(on) {
        const { operator } = await on.newOperator("viewer", { expiresAt: on.clock.timeIn(MINUTE_MS) });
        on.clock.advance(MINUTE_MS);
        const rotate = () => on.admin(`POST /api/operators/${operator.id}/rotate`, { body: {} });
        says(await rotate(), `petstore operators update ${operator.name} --expires 90d`);
        const body = { expiresAt: on.clock.timeIn(90 * DAY_MS) };
        await on.ok(`PATCH /api/operators/${operator.id}`, { body });
        expect(await rotate()).toMatchObject(OK);
      },
    },
  },
  operator_of_provider: {
    rejections: 2,
    advice: {
      async "Change a rule of --oidc-role, or the claims there"(on) {
        const { id } = Object((await signInWithProvider(on)).json["operator"]);
        const raised = await on.admin(`PATCH /api/operators/${id}`, { body: { role: "admin" } });
        says(raised, "Change a rule of --oidc-role, or the claims there.");
        const claims = { ...provider.people.get("bob") };
        provider.people.set("bob", { ...claims, groups: ["petstore-admins"] });
        const { json } = await signInWithProvider(on);
        provider.people.set("bob", claims);
        expect(json).toMatchObject({ operator: { id, role: "admin" } });
      },
      async "For petstore login, the console makes a code on its page of settings"(on) {
        const response = await signInWithProvider(on);
        const session = headersOf(on, response);
        const { id } = Object(response.json["operator"]);
        const rotated = await on.admin(`POST /api/operators/${id}/rotate`, { body: {}, ...session });
        says(rotated, "the console makes a code on its page of settings.");
        expect(await redeem(on, await makeCode(on, session))).toMatchObject(OK);
      },
    },
  },
  own_operator: {
    rejections: 1,
    advice: {
      async "Another operator with the role admin can"(on) {
        const [one, other] = [await on.newOperator("admin"), await on.newOperator("admin")];
        const revoke = (token: string) =>
          on.admin(`POST /api/operators/${one.operator.id}/revoke`, { token });
        says(await revoke(one.token), "Another operator with the role admin can.");
        expect(await revoke(other.token)).toMatchObject(OK);
      },
    },
  },
  last_admin: {
    rejections: 1,
    advice: {
      async "Create another one first"(on) {
        const demote = () => on.admin("PATCH /api/operators/1", { body: { role: "viewer" } });
        says(await demote(), "Create another one first.");
        await on.newOperator("admin");
        expect(await demote()).toMatchObject(OK);
      },
    },
  },
  too_many_operators: {
    rejections: 1,
    advice: {
      async "An admin revokes one first"(on) {
        const create = (n: number) =>
          on.app.operators.createOperator({ name: `n${n}`, role: "metrics" }, toNewToken(`n${n}`), by(on));
        await Promise.all(Array.from({ length: 199 }, (_, n) => create(n)));
        const body = { name: "ann", role: "viewer" };
        says(await on.admin("POST /api/operators", { body }), "An admin revokes one first.");
        await on.ok("POST /api/operators/2/revoke");
        await on.ok("POST /api/operators", { body });
      },
    },
  },
  key_not_active: {
    rejections: 1,
    advice: {
      async "create a new key"(on) {
        const { id } = await on.newKey();
        await on.ok(`POST /api/keys/${id}/revoke`);
        says(await on.admin(`POST /api/keys/${id}/rotate`, { body: {} }), "create a new key.");
        await on.ok("POST /api/keys", { body: { name: "test", plan: "free" } });
      },
      async "petstore keys update --expires"(on) {
        const { id } = await on.newKey({ expiresAt: on.clock.now() + MINUTE_MS });
        on.clock.advance(MINUTE_MS);
        const rotate = () => on.admin(`POST /api/keys/${id}/rotate`, { body: {} });
        says(await rotate(), `petstore keys update ${id} --expires 30d`);
        await on.ok(`PATCH /api/keys/${id}`, { body: { expiresAt: on.clock.timeIn(30 * DAY_MS) } });
        expect(await rotate()).toMatchObject(OK);
      },
    },
  },
  pet_ordered: {
    rejections: 1,
    advice: {
      async "Complete or cancel the order first"(on) {
        const { pet, order } = await orderPet(on);
        const change = () => on.admin(`PATCH /api/pets/${pet}`, { body: { status: "available" } });
        says(await change(), "Complete or cancel the order first.");
        await on.ok(`PATCH /api/orders/${order}`, { body: { status: "completed" } });
        expect(await change()).toMatchObject(OK);
      },
    },
  },
  pet_has_orders: none(1),
  no_provider: {
    rejections: 2,
    advice: {
      async "Log in on the command line with your token"(on) {
        says(await on.admin("POST /api/session/code"), "Log in on the command line with your token.");
        expect(await on.ok("/api/session")).toMatchObject({ signedIn: true });
      },
    },
  },
  no_webhook: none(1),
  order_closed: none(1),
  body_too_large: none(1),
  too_many_attempts: {
    rejections: 1,
    advice: {
      async "Retry after the seconds of Retry-After"(on) {
        for (let n = 0; n < 20; n++) await on.signIn({ token: `wrong-${n}` });
        const rejected = await on.signIn({ token: "wrong" });
        says(rejected, "Retry after ");
        on.clock.advance(Number(rejected.headers.get("retry-after")) * 1_000);
        expect(await on.signIn({ token: TOKEN })).toMatchObject(OK);
      },
    },
  },
  // The next two need a rate and an outage: test/admin/operator-rates.test.ts, test/admin/provider-sign-in.test.ts.
  too_many_requests: none(1),
  provider_unavailable: none(1),
  invalid_json: none(2),
  invalid_body: {
    rejections: 7,
    advice: {
      async "A request body is required. Send a JSON object."(on) {
        says(await on.admin("POST /api/operators"), "Send a JSON object.");
        await on.newOperator("viewer");
      },
    },
  },
  invalid_parameter: none(3),
  unsupported_media_type: {
    rejections: 2,
    advice: {
      async "Send JSON in UTF-8 without an encoding"(on) {
        const create = (headers: Record<string, string>) =>
          on.post("/pets", { name: "Rex", categoryId: 1 }, { headers });
        says(await create({ "Content-Encoding": "br" }), "Send JSON in UTF-8 without an encoding.");
        expect(await create({ "Content-Type": "application/json; charset=utf-8" })).toMatchObject({
          status: 201,
        });
      },
    },
  },
  not_found: {
    rejections: 3,
    advice: {
      async "The paths are listed at"(on) {
        says(await on.admin("/api/nothing"), "are listed at /api/openapi.json.");
        expect(await on.admin("/api/openapi.json")).toMatchObject(OK);
        says(await on.call({ path: "/nothing" }), "are listed at /docs.");
        expect((await fetch(`${on.url.replace(/\/v1$/, "")}/docs`)).status).toBe(200);
      },
    },
  },
  method_not_allowed: {
    rejections: 1,
    advice: {
      async "Allowed methods"(on) {
        says(await on.admin("PUT /api/operators"), "Allowed methods: GET");
        expect(await on.admin("GET /api/operators")).toMatchObject(OK);
      },
    },
  },
  internal_error: none(2),
  unavailable: none(1),
  missing_api_key: {
    rejections: 1,
    advice: {
      async "Send it in the Authorization header: Bearer <key>."(on) {
        says(
          await on.call({ path: "/pets", key: null }),
          "Send it in the Authorization header: Bearer <key>.",
        );
        const headers = { Authorization: `Bearer ${on.key}` };
        expect(await on.call({ path: "/pets", key: null, headers })).toMatchObject(OK);
      },
    },
  },
  invalid_api_key: {
    rejections: 4,
    advice: {
      async "Whoever gave it to you can enable it again"(on) {
        const key = await on.newKey();
        await on.ok(`POST /api/keys/${key.id}/disable`);
        const list = () => on.call({ path: "/pets", key: key.secret });
        says(await list(), "Whoever gave it to you can enable it again.");
        await on.ok(`POST /api/keys/${key.id}/enable`);
        expect(await list()).toMatchObject(OK);
      },
      async "Whoever gave it to you can extend it"(on) {
        const key = await on.newKey({ expiresAt: on.clock.now() + MINUTE_MS });
        on.clock.advance(MINUTE_MS);
        const list = () => on.call({ path: "/pets", key: key.secret });
        says(await list(), "Whoever gave it to you can extend it.");
        await on.ok(`PATCH /api/keys/${key.id}`, { body: { expiresAt: on.clock.timeIn(HOUR_MS) } });
        expect(await list()).toMatchObject(OK);
      },
      async "Use a key that begins with pet_live_"(on) {
        says(await on.call({ path: "/pets", key: generateSecret("staging") }), "begins with pet_live_.");
        expect(on.key).toStartWith("pet_live_");
      },
    },
  },
  read_only_key: {
    rejections: 1,
    advice: {
      async "Use GET or HEAD, or a key with write access"(on) {
        const { secret: key } = await on.newKey({ access: "read" });
        const body = { name: "Rex", categoryId: 1 };
        says(await on.post("/pets", body, { key }), "Use GET or HEAD, or a key with write access.");
        expect(await on.call({ path: "/pets", key })).toMatchObject(OK);
        expect(await on.post("/pets", body)).toMatchObject({ status: 201 });
      },
    },
  },
  // It takes two requests at once: test/http/idempotency.test.ts.
  idempotency_conflict: none(1),
  idempotency_key_reused: {
    rejections: 1,
    advice: {
      async "Use a new key"(on) {
        const create = (name: string, key: string) =>
          on.post("/pets", { name, categoryId: 1 }, { headers: { "Idempotency-Key": key } });
        await create("Rex", "one");
        says(await create("Tom", "one"), "Use a new key.");
        expect(await create("Tom", "two")).toMatchObject({ status: 201 });
      },
    },
  },
  // An operation is removed at a date: test/http/clock.test.ts.
  operation_removed: none(1),
  precondition_failed: {
    rejections: 1,
    advice: {
      async "Fetch the order again"(on) {
        const { order } = await orderPet(on);
        const path = `/store/orders/${order}`;
        const cancel = (etag: string) =>
          on.call({ method: "PATCH", path, body: { status: "cancelled" }, headers: { "If-Match": etag } });
        says(await cancel('"earlier"'), "Fetch the order again.");
        const { headers } = await on.call({ path });
        expect(await cancel(headers.get("etag") ?? "")).toMatchObject(OK);
      },
    },
  },
  pet_not_available: none(1),
  // How long a client waits: test/rate-limit.
  rate_limited: none(1),
  key_banned: none(1),
};

const CASES = Object.entries(ADVICE).flatMap(([code, { advice }]) =>
  Object.entries(advice).map(([text, follow]) => [code, text, follow] as const),
);

test.each(CASES)("%s: %s", async (_code, _text, follow) => {
  const on = await startAdminService({ provider: { issuer, clientId, secret, rules } });
  try {
    await follow(on);
  } finally {
    await on.stop();
  }
});

test("every message of a code is known here: a new one gives no advice, or has a case above", () => {
  const found = new Map<string, number>();
  for (const room of ["api", "domain", "operator", "petstore", "public"]) {
    const directory = join(import.meta.dir, "../../src", room);
    for (const file of new Bun.Glob("**/*.ts").scanSync(directory)) {
      const text = readFileSync(join(directory, file), "utf8");
      for (const [, code = ""] of text.matchAll(/new Rejection\(\s*"(\w+)"/g))
        if (code in ADVICE) found.set(code, (found.get(code) ?? 0) + 1);
    }
  }
  const known = Object.entries(ADVICE).map(([code, { rejections }]) => [code, rejections] as const);
  expect(Object.fromEntries(found)).toEqual(Object.fromEntries(known));
});
