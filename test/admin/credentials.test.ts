import { describe, expect, test } from "bun:test";
import { leastRoleOf, mayCall, type Role } from "../../src/domain/operators.ts";
import {
  ADMIN_OPERATIONS,
  type AdminOperation,
  type AdminOperationId,
} from "../../src/operator/operations.ts";
import { type AdminRequest, codeOf, sessionOf, useAdminService } from "./admin-service.ts";

const service = await useAdminService();

const OPERATIONS = Object.entries<AdminOperation>(ADMIN_OPERATIONS)
  .filter(([, row]) => !row.needsNoToken)
  // It ends the session with which the others are called.
  .toSorted(([a], [b]) => Number(a === "deleteSessions") - Number(b === "deleteSessions"));
const IDS = OPERATIONS.map(([id]) => id);

/** The operations that make, change or end a credential. A token that was replaced can call none of them. */
const CHANGES_CREDENTIALS: readonly AdminOperationId[] = [
  "createOperator",
  "updateOperator",
  "rotateOperator",
  "revokeOperator",
  "createKey",
  "updateKey",
  "rotateKey",
  "disableKey",
  "enableKey",
  "revokeKey",
  "createSignInCode",
  "deleteSessions",
];

type Credential = Pick<AdminRequest, "token" | "headers">;

interface Holder {
  readonly id: number;
  readonly name: string;
  readonly token: string;
}

const OVERLAP_SECONDS = 600;

let names = 0;
async function newHolder(role: Role = "admin"): Promise<Holder> {
  const name = `holder-${++names}`;
  const { operator, token } = await service.ok("POST /api/operators", { body: { name, role } });
  return { id: Number(Object(operator).id), name, token: String(token) };
}

const withToken = (token: string): Credential => ({ token });
async function signIn(body: object): Promise<Credential> {
  const response = await service.signIn(body);
  expect(response.status).toBe(200);
  return { token: null, headers: { ...sessionOf(response), Origin: service.adminUrl } };
}
const newCode = async ({ name }: Holder) => ({ code: await codeOf(service, name) });
/** Rotates the token of an operator with an overlap, by default as an admin. Resolves to the new one. */
async function rotate({ id }: Holder, as: Credential = {}): Promise<string> {
  const body = { overlapSeconds: OVERLAP_SECONDS };
  return String((await service.ok(`POST /api/operators/${id}/rotate`, { body, ...as }))["token"]);
}
const change = ({ id }: Holder, body: object) => service.ok(`PATCH /api/operators/${id}`, { body });

/** Calls every operation, and returns those that are rejected, by the code of the rejection. */
async function rejectedBy(credential: Credential): Promise<Record<string, string[]>> {
  const rejected: Record<string, string[]> = {};
  for (const [id, { method, path }] of OPERATIONS) {
    // Nothing has this identifier, and nothing is a valid body: an operation that is allowed is 4xx or a list.
    const request = { method, path: `/api${path.replace(/\{\w+\}/, "999999999")}`, ...credential };
    // A server looks for unknown credentials at most 20 times a second.
    service.clock.advance(50);
    const { status, json } = await service.admin(request);
    if (status === 401 || status === 403) (rejected[String(json["code"])] ??= []).push(id);
    else expect([id, [200, 204, 400, 404, 409].includes(status)]).toEqual([id, true]);
  }
  return rejected;
}

const sorted = (ids: readonly string[] = []) => ids.toSorted();

describe("what each operation allows", () => {
  test("every row that changes a credential, or whose response has one, is in the list", () => {
    const audited = (prefix: RegExp) =>
      OPERATIONS.filter(([, row]) => prefix.test(row.audited ?? "")).map(([id]) => id);
    const byAction = audited(/^(operator|key|admin)\.(?!unbanned$)/);
    const hasSecret = ([, { success }]: (typeof OPERATIONS)[number]) => {
      const body: AdminOperation["success"]["body"] = success.body;
      return body?.kind === "object" && body.names.some((name) => ["token", "secret", "code"].includes(name));
    };
    const makers = OPERATIONS.filter(hasSecret).map(([id]) => id);
    expect(makers).toEqual([
      "createSignInCode",
      "createOperator",
      "rotateOperator",
      "createKey",
      "rotateKey",
    ]);
    expect(sorted([...new Set([...byAction, ...makers])])).toEqual(sorted(CHANGES_CREDENTIALS));
  });

  /** Credentials that may call everything. */
  const CURRENT: Record<string, () => Promise<Credential>> = {
    "the current token": async () => withToken((await newHolder()).token),
    "a session of the current token": async () => signIn({ token: (await newHolder()).token }),
    "a session by a code": async () => signIn(await newCode(await newHolder())),
    "the new token in the overlap": async () => withToken(await rotate(await newHolder())),
    "a session of the new token in the overlap": async () =>
      signIn({ token: await rotate(await newHolder()) }),
    async "a session by a code that was made in the overlap"() {
      const holder = await newHolder();
      await rotate(holder);
      return signIn(await newCode(holder));
    },
    async "the session that replaced the token, after the overlap"() {
      const holder = await newHolder();
      const session = await signIn({ token: holder.token });
      await rotate(holder, session);
      service.clock.advance(OVERLAP_SECONDS * 1_000);
      return session;
    },
  };
  test.each(Object.keys(CURRENT))("%s: everything", async (name) => {
    expect(await rejectedBy((await CURRENT[name]?.()) ?? {})).toEqual({});
  });

  /** Credentials of a token that was replaced, in its overlap. */
  const REPLACED: Record<string, (holder: Holder) => Promise<Credential>> = {
    async "a token that was replaced"(holder) {
      await rotate(holder);
      return withToken(holder.token);
    },
    async "a session that a token made before it was replaced"(holder) {
      const session = await signIn({ token: holder.token });
      await rotate(holder);
      return session;
    },
    async "a session that a token made after it was replaced"(holder) {
      await rotate(holder);
      return signIn({ token: holder.token });
    },
    async "a session by a code that was made before the token was replaced"(holder) {
      const code = await newCode(holder);
      await rotate(holder);
      return signIn(code);
    },
    async "a session by a code, from before the token was replaced"(holder) {
      const session = await signIn(await newCode(holder));
      await rotate(holder);
      return session;
    },
  };
  test.each(Object.keys(REPLACED))("%s: everything but credentials, until the overlap ends", async (name) => {
    const holder = await newHolder();
    const credential = (await REPLACED[name]?.(holder)) ?? {};
    const endsAt = service.clock.now() + OVERLAP_SECONDS * 1_000;
    expect((await service.ok("/api/session", credential))["operator"]).toMatchObject({ name: holder.name });
    expect(await service.admin("/metrics", credential)).toMatchObject({ status: 200 });
    const own = await service.admin(`POST /api/operators/${holder.id}/rotate`, { body: {}, ...credential });
    const message = `The token of ${holder.name} was replaced. Until its overlap ends, it and its sessions can neither sign out everywhere nor change operators or API keys. Use the new token.`;
    expect(own).toMatchObject({ status: 403, json: { code: "replaced_token", message } });
    const rejected = await rejectedBy(credential);
    expect(Object.keys(rejected)).toEqual(["replaced_token"]);
    expect(sorted(rejected["replaced_token"])).toEqual(sorted(CHANGES_CREDENTIALS));
    service.clock.advance(endsAt - 1 - service.clock.now());
    const status = async () => (await service.admin("/api/keys", credential)).status;
    expect(await status()).toBe(200);
    service.clock.advance(1);
    expect(await status()).toBe(401);
  });

  /** Credentials that may do nothing, by the code of the rejection. */
  const ENDED: Record<string, [code: string, make: () => Promise<Credential>]> = {
    "a token whose overlap is over": [
      "invalid_token",
      async () => {
        const holder = await newHolder();
        await rotate(holder);
        service.clock.advance(OVERLAP_SECONDS * 1_000);
        return withToken(holder.token);
      },
    ],
    "a session of a token whose overlap is over": [
      "not_signed_in",
      async () => {
        const holder = await newHolder();
        await rotate(holder);
        const session = await signIn({ token: holder.token });
        service.clock.advance(OVERLAP_SECONDS * 1_000);
        return session;
      },
    ],
    "a session of a token that was replaced without an overlap": [
      "not_signed_in",
      async () => {
        const { id, token } = await newHolder();
        const session = await signIn({ token });
        await service.ok(`POST /api/operators/${id}/rotate`);
        return session;
      },
    ],
    "an expired token": [
      "invalid_token",
      async () => {
        const holder = await newHolder();
        await change(holder, { expiresAt: service.clock.timeIn(1_000) });
        service.clock.advance(1_000);
        return withToken(holder.token);
      },
    ],
    "a session of an expired token": [
      "invalid_token",
      async () => {
        const holder = await newHolder();
        await change(holder, { expiresAt: service.clock.timeIn(1_000) });
        const session = await signIn({ token: holder.token });
        service.clock.advance(1_000);
        return session;
      },
    ],
    "the token of a revoked operator": [
      "invalid_token",
      async () => {
        const { id, token } = await newHolder();
        await service.ok(`POST /api/operators/${id}/revoke`);
        return withToken(token);
      },
    ],
    "the replaced token of a revoked operator": [
      "invalid_token",
      async () => {
        const holder = await newHolder();
        await rotate(holder);
        await service.ok(`POST /api/operators/${holder.id}/revoke`);
        return withToken(holder.token);
      },
    ],
    "a session of a revoked operator": [
      "not_signed_in",
      async () => {
        const { id, token } = await newHolder();
        const session = await signIn({ token });
        await service.ok(`POST /api/operators/${id}/revoke`);
        return session;
      },
    ],
    "a session whose operator got the role metrics": [
      "not_signed_in",
      async () => {
        const holder = await newHolder();
        const session = await signIn({ token: holder.token });
        await change(holder, { role: "metrics" });
        return session;
      },
    ],
    "a session that is 12 hours old": [
      "not_signed_in",
      async () => {
        const session = await signIn({ token: (await newHolder()).token });
        service.clock.advance(12 * 3_600_000);
        return session;
      },
    ],
  };
  test.each(Object.keys(ENDED))("%s: nothing", async (name) => {
    const [code, make] = ENDED[name] ?? expect.unreachable();
    const rejected = await rejectedBy(await make());
    expect(Object.keys(rejected)).toEqual([code]);
    expect(sorted(rejected[code])).toEqual(sorted(IDS));
  });

  test.each(["viewer", "support", "metrics"] as const)(
    "a token, also a replaced one, and a session after the role became %s: what the role allows",
    async (role) => {
      const holder = await newHolder();
      const session = await signIn({ token: holder.token });
      const next = await rotate(holder, session);
      await change(holder, { role });
      // rotateOperator says itself that somebody else's token needs the role admin.
      const beyond = OPERATIONS.filter(
        ([id, row]) => !mayCall(role, id === "rotateOperator" ? "admin" : leastRoleOf(row)),
      ).map(([id]) => id);
      const current = role === "metrics" ? [withToken(next)] : [session, withToken(next)];
      for (const each of current) {
        const rejected = await rejectedBy(each);
        expect(Object.keys(rejected)).toEqual(["forbidden_role"]);
        expect(sorted(rejected["forbidden_role"])).toEqual(sorted(beyond));
      }
      const rejected = Object.values(await rejectedBy(withToken(holder.token))).flat();
      expect(sorted(rejected)).toEqual(sorted([...new Set([...beyond, ...CHANGES_CREDENTIALS])]));
    },
  );

  test("a code whose token has ended, or whose operator has expired or is revoked, signs nobody in", async () => {
    const [ended, expired, revoked] = [await newHolder(), await newHolder(), await newHolder()];
    const codes = [await newCode(ended), await newCode(expired), await newCode(revoked)];
    await service.ok(`POST /api/operators/${ended.id}/rotate`, { body: { overlapSeconds: 1 } });
    await change(expired, { expiresAt: service.clock.timeIn(1_000) });
    await service.ok(`POST /api/operators/${revoked.id}/revoke`);
    service.clock.advance(1_000);
    const responses = codes.map((body) => service.signIn(body));
    const rejections = (await Promise.all(responses)).map(({ json }) => json["code"]);
    expect(rejections).toEqual(["invalid_code", "invalid_token", "invalid_code"]);
  });
});
