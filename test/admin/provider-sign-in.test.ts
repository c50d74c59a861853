import { afterAll, expect, test } from "bun:test";
import { network } from "../../src/config/address-types.ts";
import { roleRules } from "../../src/config/sign-in-types.ts";
import {
  type Interference,
  ROLE_RULES,
  startIdentityProvider,
} from "../../trials/harness/identity-provider.ts";
import { type AdminService, codeOf, sessionOf, startAdminService } from "./admin-service.ts";
import { until } from "../timing.ts";

const HOUR = 3_600_000;
const rules = roleRules.parse(ROLE_RULES.join(",")) ?? [];

const provider = await startIdentityProvider();
afterAll(() => provider[Symbol.asyncDispose]());
const { issuer, clientId, secret } = provider;

async function start(rest: Partial<Parameters<typeof startAdminService>[1]> = {}): Promise<AdminService> {
  const service = await startAdminService({ provider: { issuer, clientId, secret, rules } }, rest);
  afterAll(() => service.stop());
  return service;
}

const service = await start();

/** Sign-ins and their reports are limited. */
const BETWEEN_MS = 180_000;

/** What a page keeps while the provider has the browser. */
async function begin(on = service) {
  on.clock.advance(BETWEEN_MS);
  const { url, ...secrets } = await on.ok("POST /api/session/provider", { token: null });
  return { url: String(url), secrets };
}

const finish = (secrets: object, response: string, on = service) =>
  on.signIn({ provider: { response, ...secrets } });

async function signIn(login: string, on = service) {
  const { url, secrets } = await begin(on);
  return finish(secrets, await provider.logIn(url, login), on);
}

const newestAudit = async (on = service) => {
  const { items } = await on.ok("/api/audit?limit=10");
  return (items as Record<string, unknown>[]).filter(({ action }) => action !== "key.created");
};

/** Waits for the entry of a failed sign-in, for which no response waits. */
const newFailure = async (reason: string | RegExp) => {
  const newest = async () => (await newestAudit())[0];
  const isFailure = (entry = {}) => String(Object(Object(entry)["after"])["reason"]).match(reason) !== null;
  await until(async () => isFailure(await newest()), 5_000);
  return newest();
};

test("a person with a role signs in: the operator is the verified address, and the audit trail names the subject", async () => {
  const { url } = await begin();
  const asked = Object.fromEntries(new URL(url).searchParams);
  expect(asked).toMatchObject({
    client_id: clientId,
    redirect_uri: `${service.adminUrl}/`,
    response_type: "code",
    scope: "openid email profile groups",
    code_challenge_method: "S256",
  });
  expect((await service.ok("/api/session", { token: null }))["provider"]).toBe(new URL(issuer).host);
  const response = await signIn("ann");
  expect(response.status).toBe(200);
  expect(response.json).toMatchObject({ operator: { name: "ann@example.com", role: "admin" } });
  expect(response.headers.get("set-cookie")).toContain("HttpOnly; SameSite=Strict");
  const headers = sessionOf(response);
  const session = await service.ok("/api/session", { token: null, headers });
  expect(session).toMatchObject({ signedIn: true, operator: { name: "ann@example.com" } });
  const subject = `${issuer} ann`;
  const [signedIn, created] = await newestAudit();
  expect(signedIn).toMatchObject({
    action: "admin.signed-in",
    actor: { operator: "ann@example.com" },
    after: {
      subject,
      email: "Ann@Example.com",
      name: "Ann",
      role: "admin",
      "claim groups": ["petstore-admins", "staff"],
    },
  });
  expect(created).toMatchObject({ action: "operator.created", after: { subject, role: "admin" } });
});

test("a person without a role may not sign in; the message says why, and the audit trail has the claims that were seen", async () => {
  const { status, json } = await signIn("eve");
  expect({ status, code: json["code"] }).toEqual({ status: 403, code: "sign_in_not_allowed" });
  expect(json["message"]).toContain("No rule of --oidc-role grants you a role");
  expect(await newFailure(/^No rule/)).toMatchObject({
    action: "admin.sign-in-failed",
    after: {
      reason: "No rule of --oidc-role grants you a role",
      subject: `${issuer} eve`,
      email: "eve@example.com",
      "claim groups": ["sales", "staff"],
    },
  });
  const { items } = await service.ok("/api/operators");
  expect(JSON.stringify(items)).not.toContain("eve@");
});

test("an address that the provider has not verified is no operator, whatever its claims", async () => {
  const { status, json } = await signIn("mallory");
  expect({ status, code: json["code"] }).toEqual({ status: 403, code: "sign_in_not_allowed" });
  expect(json["message"]).toContain("no verified email address");
});

/** The bodies that are changed on the way from the token endpoint. */
const changed =
  (path: string, change: (body: Record<string, unknown>) => Promise<object> | object): Interference =>
  (request, forward) =>
    new URL(request.url).pathname === path
      ? forward().then(async (response) => {
          const body = await change(Object(await response.json()));
          return Response.json(body, { status: response.status });
        })
      : undefined;

/** Changes the claims of the ID token, which stays signed by the provider. */
const withClaims = (change: (claims: Record<string, unknown>) => object, by?: CryptoKey) =>
  changed("/token", async ({ id_token, ...body }) => {
    const [, payload = ""] = String(id_token).split(".");
    const claims = change(JSON.parse(Buffer.from(payload, "base64url").toString()));
    return { ...body, id_token: await provider.sign({ ...claims }, by && { by }) };
  });

const strangersKey = (await provider.newKey()).privateKey;
const now = () => Math.floor(Date.now() / 1_000);
const redirectTo =
  (path: string, host: string): Interference =>
  (request) =>
    new URL(request.url).pathname === path
      ? Promise.resolve(new Response(null, { status: 307, headers: { Location: `http://${host}${path}` } }))
      : undefined;
const broken =
  (path: string, body: string, status = 200): Interference =>
  (request) =>
    new URL(request.url).pathname === path
      ? Promise.resolve(new Response(body, { status, headers: { "Content-Type": "application/json" } }))
      : undefined;

const DISCOVERY = "/.well-known/openid-configuration";

/** The host that a hostile provider names. Nothing arrives there. */
let reached = 0;
const elsewhere = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response(`${++reached}`) });
afterAll(() => elsewhere.stop(true));

/** What is wrong with a response of the provider, and what operators see of it. */
const HOSTILE: Readonly<
  Record<string, { interference: Interference; code: string; reason: string | RegExp }>
> = {
  "an ID token of another issuer": {
    interference: withClaims((claims) => ({ ...claims, iss: "https://evil.example" })),
    code: "rejected_sign_in",
    reason: /"iss"/,
  },
  "an ID token for another audience": {
    interference: withClaims((claims) => ({ ...claims, aud: "another-client" })),
    code: "rejected_sign_in",
    reason: /"aud"/,
  },
  "an ID token with another nonce": {
    interference: withClaims((claims) => ({ ...claims, nonce: "another" })),
    code: "rejected_sign_in",
    reason: /"nonce"/,
  },
  "an ID token without a nonce": {
    interference: withClaims(({ nonce: _nonce, ...claims }) => claims),
    code: "rejected_sign_in",
    reason: /"nonce"/,
  },
  "an ID token that has expired": {
    interference: withClaims((claims) => ({ ...claims, iat: now() - 900, exp: now() - 60 })),
    code: "rejected_sign_in",
    reason: /"exp"/,
  },
  "an ID token that another key has signed": {
    interference: withClaims((claims) => claims, strangersKey),
    code: "rejected_sign_in",
    reason: /signature/,
  },
  "an ID token without a signature": {
    interference: changed("/token", ({ id_token, ...body }) => {
      const [, payload = ""] = String(id_token).split(".");
      const header = Buffer.from('{"alg":"none"}').toString("base64url");
      return { ...body, id_token: `${header}.${payload}.` };
    }),
    code: "rejected_sign_in",
    reason: /alg/,
  },
  "no ID token": {
    interference: changed("/token", ({ id_token: _token, ...body }) => body),
    code: "rejected_sign_in",
    reason: /id_token/,
  },
  "claims of another subject at the UserInfo endpoint": {
    interference: changed("/me", (body) => ({ ...body, sub: "somebody-else", groups: ["petstore-admins"] })),
    code: "rejected_sign_in",
    reason: /"sub"/,
  },
  "a discovery document of another issuer": {
    interference: changed("/.well-known/openid-configuration", (body) => ({
      ...body,
      issuer: "https://evil.example",
    })),
    code: "provider_unavailable",
    reason: /discovery document/,
  },
  "a discovery document with a script": {
    interference: changed("/.well-known/openid-configuration", (body) => ({
      ...body,
      authorization_endpoint: "javascript:alert(1)",
    })),
    code: "provider_unavailable",
    reason: /authorization_endpoint/,
  },
  "a discovery document whose scopes are a number": {
    interference: changed(DISCOVERY, (body) => ({ ...body, scopes_supported: 5 })),
    code: "provider_unavailable",
    reason: /`scopes_supported` must be an array/,
  },
  "a discovery document whose methods are an object": {
    interference: changed(DISCOVERY, (body) => ({ ...body, token_endpoint_auth_methods_supported: {} })),
    code: "provider_unavailable",
    reason: /`token_endpoint_auth_methods_supported` must be an array/,
  },
  "a discovery document without a token endpoint": {
    interference: changed(DISCOVERY, ({ token_endpoint: _endpoint, ...body }) => body),
    code: "provider_unavailable",
    reason: /`token_endpoint` is required/,
  },
  "a discovery document whose UserInfo endpoint is null": {
    interference: changed(DISCOVERY, (body) => ({ ...body, userinfo_endpoint: null })),
    code: "provider_unavailable",
    reason: /`userinfo_endpoint` must be/,
  },
  "a discovery document that is a list": {
    interference: broken(DISCOVERY, "[]"),
    code: "provider_unavailable",
    reason: /must be a JSON object/,
  },
  "keys that are no list": {
    interference: broken("/jwks", '{"keys":{}}'),
    code: "provider_unavailable",
    reason: /`keys` must be an array/,
  },
  "keys none of which can be read": {
    interference: changed("/jwks", ({ keys }) => ({
      keys: (keys as object[]).flatMap((key) => [null, 5, { ...key, key_ops: 5 }, { ...key, kid: [] }]),
    })),
    code: "rejected_sign_in",
    reason: /no applicable key/,
  },
  "a discovery document that is no JSON": {
    interference: broken("/.well-known/openid-configuration", "<html>"),
    code: "provider_unavailable",
    reason: /discovery document/,
  },
  "a discovery document of 2 MB": {
    interference: broken("/.well-known/openid-configuration", " ".repeat(2_000_000)),
    code: "provider_unavailable",
    reason: /more than 524288 bytes/,
  },
  "a redirect of the discovery document to another host": {
    interference: redirectTo("/.well-known/openid-configuration", `127.0.0.1:${elsewhere.port}`),
    code: "provider_unavailable",
    reason: /307/,
  },
  "a redirect of the token endpoint to another host": {
    interference: redirectTo("/token", `127.0.0.1:${elsewhere.port}`),
    code: "provider_unavailable",
    reason: /307/,
  },
  "an error of the token endpoint": {
    interference: broken("/token", "{}", 500),
    code: "provider_unavailable",
    reason: /500/,
  },
  "a client that the provider does not know": {
    interference: broken("/token", '{"error":"invalid_client"}', 401),
    code: "provider_unavailable",
    reason: /invalid_client/,
  },
};

test.each(Object.entries(HOSTILE))("%s signs nobody in", async (_name, { interference, code, reason }) => {
  const { url, secrets } = await begin();
  const response = await provider.logIn(url, "ann");
  provider.interfere(interference);
  service.clock.advance(10_000);
  const { json, headers } = await finish(secrets, response);
  provider.interfere();
  expect(json["code"]).toBe(code);
  expect(headers.get("set-cookie")).toBeNull();
  expect(reached).toBe(0);
  if (code === "provider_unavailable") expect(json["message"]).toMatch(reason);
  else {
    expect(await newFailure(reason)).toMatchObject({ action: "admin.sign-in-failed" });
  }
});

test("a response works once, on the page that began the sign-in, and for no other", async () => {
  const { url, secrets } = await begin();
  const response = await provider.logIn(url, "ann");
  const other = await begin();
  const rejected = { status: 401, json: expect.objectContaining({ code: "rejected_sign_in" }) };
  // Another page has a state, a nonce and a code verifier of its own.
  expect(await finish(other.secrets, response)).toMatchObject(rejected);
  const query = new URLSearchParams(response);
  query.set("state", String(Object(other.secrets).state));
  expect(await finish(other.secrets, `?${query}`)).toMatchObject(rejected);
  expect((await finish(secrets, response)).status).toBe(200);
  expect(await finish(secrets, response)).toMatchObject(rejected);
  for (const issuerOfResponse of ["https://evil.example", ""]) {
    const begun = await begin();
    const mixedUp = new URLSearchParams(await provider.logIn(begun.url, "ann"));
    mixedUp.set("iss", issuerOfResponse);
    expect(await finish(begun.secrets, `?${mixedUp}`)).toMatchObject(rejected);
  }
  const refused = await begin();
  const { state } = Object(refused.secrets);
  const description = `No%0Away${"x".repeat(200)}`;
  const denied = `?error=access_denied&error_description=${description}&state=${state}&iss=${issuer}`;
  expect(await finish(refused.secrets, denied)).toMatchObject(rejected);
  const reason = /^it responds access_denied: No.{171}$/;
  expect(await newFailure(reason)).toMatchObject({ action: "admin.sign-in-failed" });
});

test("while the provider is away nobody signs in with it, and tokens work; then people sign in again", async () => {
  const begun = await begin();
  const response = await provider.logIn(begun.url, "bob");
  await provider.goAway();
  service.clock.advance(10_000);
  const unavailable = { status: 503, json: expect.objectContaining({ code: "provider_unavailable" }) };
  expect(await service.admin("POST /api/session/provider", { token: null })).toMatchObject(unavailable);
  const { status, headers } = await finish(begun.secrets, response);
  expect({ status, wait: headers.get("retry-after") }).toEqual({ status: 503, wait: "5" });
  expect((await service.admin("/api/server")).status).toBe(200);
  provider.comeBack();
  expect((await finish(begun.secrets, response)).json).toMatchObject({ operator: { role: "viewer" } });
});

test("a role that the provider takes away ends with the next sign-in, and after 12 hours at the latest", async () => {
  const own = await start();
  const [first, second] = [await signIn("ann", own), await signIn("ann", own)];
  const who = async (response: typeof first) => {
    const session = await own.ok("/api/session", { token: null, headers: sessionOf(response) });
    return Object(session["operator"]).role;
  };
  expect([await who(first), await who(second)]).toEqual(["admin", "admin"]);
  const claims = { ...provider.people.get("ann") };
  provider.people.set("ann", { ...claims, groups: ["petstore-viewers"] });
  const third = await signIn("ann", own);
  expect([await who(first), await who(third)]).toEqual(["viewer", "viewer"]);
  const [, updated] = await newestAudit(own);
  expect(updated).toMatchObject({
    action: "operator.updated",
    before: { role: "admin" },
    after: { role: "viewer" },
  });
  provider.people.set("ann", { ...claims, groups: [] });
  expect((await signIn("ann", own)).status).toBe(403);
  expect([await who(first), await who(third)]).toEqual([undefined, undefined]);
  provider.people.set("ann", claims);
  // Nothing from before comes back with the role.
  const again = await signIn("ann", own);
  expect([await who(first), await who(again)]).toEqual([undefined, "admin"]);
  own.clock.advance(12 * HOUR);
  const { status, json } = await own.admin("/api/server", { token: null, headers: sessionOf(again) });
  expect({ status, message: json["message"] }).toEqual({
    status: 401,
    message: expect.stringMatching(
      /^The sign-in of ann@example.com expired .* Sign in again with the provider.$/,
    ),
  });
});

test("signing out ends the session; an operator who is revoked here stays out, also with another address", async () => {
  const own = await start();
  const response = await signIn("bob", own);
  const headers = sessionOf(response);
  expect((await own.admin("/api/server", { token: null, headers })).status).toBe(200);
  await own.ok("DELETE /api/session", { token: null, headers: { ...headers, Origin: own.adminUrl } });
  expect((await own.admin("/api/server", { token: null, headers })).status).toBe(401);
  const { id } = Object(response.json["operator"]);
  await own.ok(`POST /api/operators/${id}/revoke`);
  const claims = { ...provider.people.get("bob") };
  for (const email of ["bob@example.com", "robert@example.com"]) {
    provider.people.set("bob", { ...claims, email });
    const { status, json } = await signIn("bob", own);
    expect({ status, message: String(json["message"]) }).toEqual({
      status: 403,
      message: expect.stringContaining("Operator bob@example.com is revoked"),
    });
  }
  provider.people.set("bob", claims);
});

test("a person is the provider's subject: another address ends the sessions of the first, and each is revoked with the other", async () => {
  const own = await start();
  const claims = { ...provider.people.get("bob") };
  const before = await signIn("bob", own);
  provider.people.set("bob", { ...claims, email: "robert@example.com" });
  const after = await signIn("bob", own);
  const status = async (response: typeof before) =>
    (await own.admin("/api/keys", { token: null, headers: sessionOf(response) })).status;
  expect([await status(before), await status(after)]).toEqual([401, 200]);
  const [first, second] = [before, after].map(({ json }) => Object(json["operator"]).id);
  expect(first).not.toBe(second);
  // The address that the person no longer has is the person, too.
  await own.ok(`POST /api/operators/${first}/revoke`);
  expect(await status(after)).toBe(401);
  for (const email of ["bob@example.com", "robert@example.com", "bobby@example.com"]) {
    provider.people.set("bob", { ...claims, email });
    expect((await signIn("bob", own)).status).toBe(403);
  }
  provider.people.set("bob", claims);
  // Nobody revokes themselves so.
  const ann = { ...provider.people.get("ann") };
  const id = Object((await signIn("ann", own)).json["operator"]).id;
  provider.people.set("ann", { ...ann, email: "anna@example.com" });
  const headers = { ...sessionOf(await signIn("ann", own)), Origin: own.adminUrl };
  provider.people.set("ann", ann);
  const { json } = await own.admin(`POST /api/operators/${id}/revoke`, { token: null, headers });
  expect(json["code"]).toBe("own_operator");
});

test("an operator with a token becomes one of the provider; the last lasting admin does not", async () => {
  const own = await start();
  const created = await own.ok("POST /api/operators", { body: { name: "ann@example.com", role: "viewer" } });
  const token = String(created["token"]);
  const { json } = await signIn("ann", own);
  expect(json).toMatchObject({ operator: { name: "ann@example.com", role: "admin" } });
  // Nothing vouches for the earlier token.
  expect((await own.admin("/api/server", { token })).status).toBe(401);
  const { items } = await own.ok("/api/operators");
  expect(items).toContainEqual(
    expect.objectContaining({
      name: "ann@example.com",
      role: "admin",
      subject: `${issuer} ann`,
      hint: "none",
    }),
  );
  const lasting = await start();
  await lasting.ok("POST /api/operators", { body: { name: "ann@example.com", role: "admin" } });
  const [bootstrap] = (await lasting.ok("/api/operators"))["items"] as { id: number }[];
  const ann = { token: String((await lasting.ok("POST /api/operators/2/rotate", { body: {} }))["token"]) };
  await lasting.ok(`POST /api/operators/${bootstrap?.id}/revoke`, ann);
  const { status, json: refused } = await signIn("ann", lasting);
  expect({ status, message: String(refused["message"]) }).toEqual({
    status: 403,
    message: expect.stringContaining("is the last admin whose token does not expire"),
  });
  expect((await lasting.admin("/api/server", ann)).status).toBe(200);
});

const proxied = () => start({ trustedProxies: [network.parse("127.0.0.1")].flatMap((each) => each ?? []) });
const from = (address: string) => ({ "X-Forwarded-For": address });
const beginFrom = (on: AdminService, address: string) =>
  on.admin("POST /api/session/provider", { token: null, headers: from(address) });
const FLOOD = "192.0.2.1";

test("sign-ins that anybody can begin are limited: 20 at once and one a second for each address, and 200 and 20 for all", async () => {
  const own = await proxied();
  await provider.goAway();
  const statuses = async (addresses: readonly string[]) => {
    const all: number[] = [];
    for (const address of addresses) all.push((await beginFrom(own, address)).status);
    return all;
  };
  expect(await statuses(Array(22).fill(FLOOD))).toEqual([...Array(20).fill(503), 429, 429]);
  own.clock.advance(1_000);
  expect(await statuses([FLOOD, FLOOD])).toEqual([503, 429]);
  // What is rejected takes nothing from the others.
  const others = Array.from({ length: 222 }, (_, i) => `198.51.100.${i}`);
  expect(await statuses(others)).toEqual([...Array(199).fill(503), ...Array(23).fill(429)]);
  own.clock.advance(1_000);
  expect(await statuses(others.slice(0, 21))).toEqual([...Array(20).fill(503), 429]);
  provider.comeBack();
});

test("a sign-in that this environment has begun ends, once, also from the address of a flood, and on another server", async () => {
  const [own, other] = [await proxied(), await proxied()];
  const begun = await Promise.all(
    ["203.0.113.1", "203.0.113.2", "203.0.113.3"].map(async (address) => {
      const { url, ...secrets } = (await beginFrom(own, address)).json;
      return { provider: { response: await provider.logIn(String(url), "ann"), ...secrets } };
    }),
  );
  const flood = { provider: { response: "?code=a", state: "a", nonce: "b", codeVerifier: "c" } };
  for (const on of [own, other])
    for (let i = 0; i < 40; i++) {
      await beginFrom(on, FLOOD);
      await on.signIn(flood, from(FLOOD));
    }
  expect((await own.signIn(flood, from(FLOOD))).json["code"]).toBe("too_many_attempts");
  const page = { Host: new URL(own.adminUrl).host, Origin: own.adminUrl };
  const [first = {}, second = {}, third = {}] = begun;
  const ended = [own.signIn(first, from(FLOOD)), other.signIn(second, { ...from(FLOOD), ...page })];
  expect((await Promise.all(ended)).map(({ status }) => status)).toEqual([200, 200]);
  // The state does it once, and for ten minutes.
  expect((await own.signIn(first, from(FLOOD))).status).toBe(429);
  for (const on of [own, other]) on.clock.advance(600_000);
  for (let i = 0; i < 20; i++) await beginFrom(own, FLOOD);
  expect((await own.signIn(third, from(FLOOD))).status).toBe(429);
  // Without a flood it ends as well.
  expect((await own.signIn(third, from("203.0.113.9"))).status).toBe(200);
});

test("the discovery document is read once in ten seconds, and again after a failure", async () => {
  const own = await start();
  let reads = 0;
  let status = 200;
  provider.interfere((request, forward) => {
    if (new URL(request.url).pathname !== DISCOVERY) return undefined;
    reads++;
    return status === 200 ? forward() : Promise.resolve(new Response("{}", { status }));
  });
  const beginOften = async () =>
    (await Promise.all(Array.from({ length: 5 }, () => beginFrom(own, FLOOD)))).map((each) => each.status);
  expect(await beginOften()).toEqual(Array(5).fill(200));
  own.clock.advance(9_999);
  expect(await beginOften()).toEqual(Array(5).fill(200));
  expect(reads).toBe(1);
  own.clock.advance(1);
  status = 500;
  expect(await beginOften()).toEqual(Array(5).fill(503));
  status = 200;
  expect(await beginOften()).toEqual(Array(5).fill(200));
  provider.interfere();
});

/** Claims of the ID token and of the UserInfo endpoint, and the operator that they make. */
const ADDRESSES: Readonly<Record<string, { idToken?: object; userInfo: object; name?: string }>> = {
  "with the Kelvin sign is not one with a k": {
    userInfo: { email: "\u212Aate@example.com", email_verified: true },
  },
  "with a long s is not one with an s": { userInfo: { email: "\u017Fam@example.com", email_verified: true } },
  "in capitals is the one in lower case": {
    userInfo: { email: "KATE@EXAMPLE.COM", email_verified: true },
    name: "kate@example.com",
  },
  "that another document verifies is not verified": {
    idToken: { email: "kate@example.com" },
    userInfo: { email: "eve@example.com", email_verified: true, groups: ["petstore-viewers"] },
    name: "eve@example.com",
  },
  "without a claim in its document is not verified": {
    idToken: { email: "kate@example.com" },
    userInfo: { email_verified: true },
  },
  "in a list is none": { userInfo: { email: ["kate@example.com", "x"], email_verified: true } },
  "that is verified in a list is not verified": {
    userInfo: { email: "kate@example.com", email_verified: [false, true] },
  },
  "that is an object is none": { userInfo: { email: { address: "kate@example.com" }, email_verified: true } },
  "in the ID token comes first": {
    idToken: { email: "kate@example.com", xms_edov: "1" },
    userInfo: { email: "eve@example.com", email_verified: true },
    name: "kate@example.com",
  },
};

test.each(Object.entries(ADDRESSES))("an address %s", async (_name, { idToken = {}, userInfo, name }) => {
  const { url, secrets } = await begin();
  const response = await provider.logIn(url, "ann");
  const inToken = withClaims((claims) => ({ ...claims, ...idToken }));
  const inUserInfo = changed("/me", ({ sub }) => ({ sub, groups: ["petstore-viewers"], ...userInfo }));
  provider.interfere((...request) => inToken(...request) ?? inUserInfo(...request));
  const { status, json } = await finish(secrets, response);
  provider.interfere();
  expect({ status, name: Object(json["operator"]).name }).toEqual({
    status: name === undefined ? 403 : 200,
    name,
  });
});

test("claims of any kind are no fault", async () => {
  for (const odd of [null, [], {}, [null, { a: [] }], 1e308, "\0\ud800", true, "x".repeat(100_000)]) {
    const { url, secrets } = await begin();
    const response = await provider.logIn(url, "bob");
    provider.interfere(
      changed("/me", (body) => ({ ...body, name: odd, groups: odd, email: odd, email_verified: odd })),
    );
    expect((await finish(secrets, response)).status).toBe(403);
    provider.interfere();
  }
});

test("the provider sends browsers back to the origin of the page; another origin begins nothing", async () => {
  const port = new URL(service.adminUrl).port;
  const behindProxy = await service.ok("POST /api/session/provider", {
    token: null,
    headers: { Host: `localhost:${port}`, Origin: `https://localhost:${port}` },
  });
  const { searchParams } = new URL(String(behindProxy["url"]));
  expect(searchParams.get("redirect_uri")).toBe(`https://localhost:${port}/`);
  const { status } = await service.admin("POST /api/session/provider", {
    token: null,
    headers: { Origin: "https://evil.example" },
  });
  expect(status).toBe(403);
});

test("the response may reach another server of the same name", async () => {
  const headers = { Host: "127.0.0.1:9", Origin: "http://127.0.0.1:9" };
  const [one, other] = [await start(), await start()];
  const { url, ...secrets } = await one.ok("POST /api/session/provider", { token: null, headers });
  const response = await provider.logIn(String(url), "ann");
  const body = { provider: { response, ...secrets } };
  const { json } = await other.signIn(body, headers);
  expect(json).toMatchObject({ operator: { name: "ann@example.com" } });
});

test("a code of the console logs a program in once, until the sign-in ends", async () => {
  const own = await start();
  const signedIn = await signIn("bob", own);
  const headers = { ...sessionOf(signedIn), Origin: own.adminUrl };
  const makeCode = () => own.ok("POST /api/session/code", { token: null, headers });
  const redeem = (code: unknown) => own.signIn({ code, credential: "token" });
  const { code, expiresAt } = await makeCode();
  expect(Date.parse(String(expiresAt)) - own.clock.now()).toBe(300_000);
  const { status, json, headers: received } = await redeem(code);
  expect(status).toBe(200);
  expect(received.get("set-cookie")).toBeNull();
  const token = String(json["token"]);
  expect(await own.ok("/api/session", { token })).toMatchObject({
    signedIn: true,
    operator: { name: "bob@example.com", role: "viewer", subject: `${issuer} bob` },
  });
  expect((await own.admin("/api/keys", { token })).status).toBe(200);
  expect((await own.admin("POST /api/keys", { token, body: { name: "a", plan: "free" } })).status).toBe(403);
  expect((await redeem(code)).json["code"]).toBe("invalid_code");
  const entry = (await newestAudit(own)).find(({ action }) => action === "admin.signed-in");
  expect(entry).toMatchObject({ after: { codeMadeBy: "console (bob@example.com)" } });
  // A part of it is worth nothing, nor is one that is changed.
  for (const wrong of [
    `${token.slice(0, -1)}A`,
    token.replace(/\..*/, `.${"a".repeat(43)}`),
    token.slice(0, 55),
  ])
    if (wrong !== token) expect((await own.admin("/api/keys", { token: wrong })).status).toBe(401);
  // Signing out ends this one alone.
  const second = String((await redeem((await makeCode())["code"])).json["token"]);
  await own.ok("DELETE /api/session", { token });
  expect((await own.admin("/api/keys", { token })).status).toBe(401);
  expect((await own.admin("/api/keys", { token: second })).status).toBe(200);
  own.clock.advance(11 * HOUR);
  const last = String((await redeem((await makeCode())["code"])).json["token"]);
  own.clock.advance(HOUR);
  for (const ended of [second, last])
    expect((await own.admin("/api/keys", { token: ended })).status).toBe(401);
});

/** A session in the console, the login on the command line by a code of it, and a code that nobody has used. */
async function logIn(on: AdminService) {
  const headers = { ...sessionOf(await signIn("bob", on)), Origin: on.adminUrl };
  on.clock.advance(60_000);
  const makeCode = async () =>
    String((await on.ok("POST /api/session/code", { token: null, headers }))["code"]);
  const redeem = async (code: string) => (await on.signIn({ code, credential: "token" })).json;
  const token = String((await redeem(await makeCode()))["token"]);
  const who = () => on.admin("/api/server", { token });
  return { headers, makeCode, redeem, token, who };
}
type Login = Awaited<ReturnType<typeof logIn>>;

/** What ends all that came from a sign-in. */
const ENDS: Readonly<Record<string, (on: AdminService, login: Login) => Promise<unknown>>> = {
  "signing out where it was made": (on, { headers }) =>
    on.ok("DELETE /api/session", { token: null, headers }),
  "signing out everywhere": (on, { headers }) => on.ok("DELETE /api/sessions", { token: null, headers }),
  "signing out everywhere on the command line": (on, { token }) => on.ok("DELETE /api/sessions", { token }),
  async "12 hours after the sign-in, also if the person signs in again meanwhile"(on) {
    on.clock.advance(12 * HOUR - 60_000 - BETWEEN_MS);
    await signIn("bob", on);
  },
  async "a sign-in with another address"(on) {
    const claims = { ...provider.people.get("bob") };
    provider.people.set("bob", { ...claims, email: "bob@new.example" });
    await signIn("bob", on);
    provider.people.set("bob", claims);
  },
  "a revocation": (on) => on.ok("POST /api/operators/2/revoke"),
};
test.each(Object.keys(ENDS))(
  "a login on the command line, and a code that is left, end with %s",
  async (name) => {
    const own = await start();
    const login = await logIn(own);
    expect((await login.who()).status).toBe(200);
    // What the login has made itself ends, too.
    const { code } = await own.ok("POST /api/session/code", { token: login.token });
    const nested = String((await login.redeem(String(code)))["token"]);
    expect((await own.admin("/api/server", { token: nested })).status).toBe(200);
    const left = name.startsWith("12 hours") ? undefined : await login.makeCode();
    await ENDS[name]?.(own, login);
    for (const token of [login.token, nested])
      expect(await own.admin("/api/server", { token })).toMatchObject({
        status: 401,
        json: {
          message:
            "The login by a code has ended. The console makes a new code on its page of settings; run petstore login with it.",
        },
      });
    if (left !== undefined)
      expect(await login.redeem(left)).toMatchObject({
        code: "invalid_code",
        message: expect.stringContaining("The console makes a new one on its page of settings."),
      });
  },
);

test("a login on the command line goes on while another session of the person ends", async () => {
  const own = await start();
  const [login, other] = [await logIn(own), await logIn(own)];
  await own.ok("DELETE /api/session", { token: null, headers: other.headers });
  expect([(await login.who()).status, (await other.who()).status]).toEqual([200, 401]);
});

test("a code of the console signs in no browser, and is still there for the command", async () => {
  const own = await start();
  const { makeCode, redeem } = await logIn(own);
  const code = await makeCode();
  for (const credential of [undefined, "cookie"]) {
    const { status, json, headers } = await own.signIn({ code, credential });
    expect({ status, cookie: headers.get("set-cookie") }).toEqual({ status: 401, cookie: null });
    expect(json["message"]).toBe(
      "The code is for the command line, and signs in no browser. Run petstore login with the URL of the server, and paste the code there.",
    );
  }
  expect(await redeem(code)).toMatchObject({ operator: { name: "bob@example.com" } });
});

test("codes of one operator displace none of another", async () => {
  const own = await start();
  const ofRoot = await codeOf(own);
  const { makeCode, redeem } = await logIn(own);
  const codes: string[] = [];
  for (let n = 0; n < 110; n++) {
    own.clock.advance(1);
    codes.push(await makeCode());
  }
  expect((await own.signIn({ code: ofRoot })).json).toMatchObject({ operator: { name: "bootstrap" } });
  const last = codes.slice(-6);
  expect((await redeem(last[0] ?? ""))["code"]).toBe("invalid_code");
  for (const code of last.slice(1)) expect((await redeem(code))["signedIn"]).toBe(true);
});

test("an operator with a token gets no code, and a person of the provider no token", async () => {
  const own = await start();
  expect((await own.admin("POST /api/session/code")).json["code"]).toBe("no_provider");
  const { headers } = await logIn(own);
  for (const as of [{ token: null, headers }, {}])
    expect(await own.admin("POST /api/operators/2/rotate", { body: {}, ...as })).toMatchObject({
      status: 409,
      json: { code: "operator_of_provider" },
    });
});

test("a server without a provider says so", async () => {
  const own = await startAdminService();
  afterAll(() => own.stop());
  const { status, json } = await own.admin("POST /api/session/provider", { token: null });
  expect({ status, code: json["code"] }).toEqual({ status: 409, code: "no_provider" });
  const secrets = { state: "a", nonce: "b", codeVerifier: "c" };
  expect((await finish(secrets, "?code=d&state=a", own)).json["code"]).toBe("no_provider");
  expect(await own.ok("/api/session", { token: null })).toEqual({ signedIn: false });
});
