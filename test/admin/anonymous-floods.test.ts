import { afterAll, expect, test } from "bun:test";
import { Glob } from "bun";
import { join } from "node:path";
import { network } from "../../src/config/address-types.ts";
import { roleRules } from "../../src/config/sign-in-types.ts";
import { ADMIN_OPERATIONS } from "../../src/operator/operations.ts";
import { ROLE_RULES, startIdentityProvider } from "../../trials/harness/identity-provider.ts";
import { codeOf, startAdminService, TOKEN } from "./admin-service.ts";

const provider = await startIdentityProvider();
afterAll(() => provider[Symbol.asyncDispose]());
const { issuer, clientId, secret } = provider;
const rules = roleRules.parse(ROLE_RULES.join(",")) ?? [];
const trustedProxies = [network.parse("127.0.0.1")].flatMap((each) => each ?? []);

const FLOOD = { "X-Forwarded-For": "192.0.2.1" };
const OTHER = { "X-Forwarded-For": "198.51.100.1" };
const secretOf = (n: number) => String(n).padStart(43, "x");

/** What anybody can send to the operations that need no credential: the path, and the n-th body or header. */
const FLOODS: Readonly<
  Record<string, ((n: number) => { body?: object; headers?: Record<string, string> })[]>
> = {
  createSession: [
    (n) => ({ body: { token: `guess ${n}` } }),
    (n) => ({ body: { token: secretOf(n) } }),
    (n) => ({ body: { code: secretOf(n) } }),
    (n) => ({ body: { provider: { response: "?code=a", state: `${n}`, nonce: "b", codeVerifier: "c" } } }),
  ],
  beginSignIn: [() => ({})],
  getSession: [
    (n) => ({ headers: { Authorization: `Bearer guess${n}` } }),
    (n) => ({ headers: { Authorization: `Bearer pet_session_${secretOf(n)}.${secretOf(n)}` } }),
  ],
  deleteSession: [
    (n) => ({ headers: { Authorization: `Bearer pet_session_${secretOf(n)}.${secretOf(n)}` } }),
  ],
};

const OPEN = Object.entries(ADMIN_OPERATIONS).filter(([, operation]) => "needsNoToken" in operation);

test("each operation that needs no credential is flooded", () => {
  expect(Object.keys(FLOODS).toSorted()).toEqual(OPEN.map(([id]) => id).toSorted());
});

test.each(OPEN)(
  "%s: a flood from one address keeps nobody out who signs in from another",
  async (id, row) => {
    const service = await startAdminService(
      { provider: { issuer, clientId, secret, rules } },
      { trustedProxies },
    );
    const { url, ...secrets } = await service.ok("POST /api/session/provider", {
      token: null,
      headers: OTHER,
    });
    for (const flood of FLOODS[id] ?? [])
      await Promise.all(
        Array.from({ length: 150 }, (_, n) => {
          const { body, headers } = flood(n);
          return service.admin(`${row.method} /api${row.path}`, {
            token: null,
            ...(body && { body }),
            headers: { ...headers, ...FLOOD },
          });
        }),
      );
    const body = { provider: { response: await provider.logIn(String(url), "ann"), ...secrets } };
    const statuses = {
      // A sign-in that has begun ends from the address of the flood, too.
      "the end of a sign-in": (await service.signIn(body, FLOOD)).status,
      "its beginning": (await service.admin("POST /api/session/provider", { token: null, headers: OTHER }))
        .status,
      "a short token": (await service.signIn({ token: TOKEN }, OTHER)).status,
      // This server has not read the code yet.
      "a new code": (await service.signIn({ code: await codeOf(service) }, FLOOD)).status,
    };
    expect(statuses).toEqual({
      "the end of a sign-in": 200,
      "its beginning": 200,
      "a short token": 200,
      "a new code": 200,
    });
    await service.stop();
  },
);

/** Who can empty each bucket, and what that does to others. */
const BUCKETS: Readonly<Record<string, string>> = {
  "auth/lookup-queue.ts":
    "clients whose address is at its limit, for one another; half is kept for keys that are sent again",
  "observe/access-log.ts": "anybody: lines of probes and preflights are left out",
  "observe/error-log.ts": "anybody: lines are counted",
  "operator/handlers/operators.ts": "whoever has a token of the role metrics, for tokens of that role",
  "operator/operator-rates.ts": "an operator, for that operator",
  "operator/sign-in/failed-sign-ins.ts": "anybody: entries are counted",
  "runtime/address-buckets.ts": "an address, for that address",
};

test("it is known of each bucket who can empty it", async () => {
  const src = join(import.meta.dir, "../../src");
  const files: string[] = [];
  for (const path of new Glob("**/*.{ts,tsx}").scanSync(src))
    if ((await Bun.file(join(src, path)).text()).includes("new TokenBucket(")) files.push(path);
  expect(files.toSorted()).toEqual(Object.keys(BUCKETS));
});
