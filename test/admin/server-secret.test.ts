import { describe, expect, jest, test } from "bun:test";
import { hostname } from "node:os";
import { NO_ACTIVITY, type ServerState } from "../../src/domain/servers.ts";
import { newNonce, ServerSecret } from "../../src/operator/server-secret.ts";
import { useAdminService } from "./admin-service.ts";

const secretOf = (byte: number) => new ServerSecret(Buffer.alloc(32, byte).toString("base64url"));
const ONE = secretOf(1);
const OTHER = secretOf(2);
const URL_HERE = "http://127.0.0.1:8090";
const HERE = { adminUrl: URL_HERE, name: hostname() };
const AT = Date.UTC(2026, 10, 16);

describe("the secret of the servers", () => {
  test("a proof is of one secret, nonce and URL", () => {
    const nonce = newNonce();
    const proof = ONE.proofOf(nonce, URL_HERE);
    expect(ONE.isProof(proof, nonce, HERE)).toBeTrue();
    expect(OTHER.isProof(proof, nonce, HERE)).toBeFalse();
    expect(ONE.isProof(proof, newNonce(), HERE)).toBeFalse();
    expect(ONE.isProof(proof, nonce, { ...HERE, adminUrl: "http://127.0.0.1:8091" })).toBeFalse();
    expect(ONE.isProof(proof, nonce, { ...HERE, name: "web-2" })).toBeFalse();
    for (const wrong of ["", "x", proof.slice(1), `${proof}x`, "é".repeat(43)])
      expect(ONE.isProof(wrong, nonce, HERE)).toBeFalse();
  });

  test("what a server tells of its URL is signed with its identifier, machine and time, for 30 seconds", () => {
    const identity = { id: "one", name: "web-1", version: "1", startedAt: 0 };
    const told = { ...NO_ACTIVITY, ...identity, ...ONE.urlOf(identity, URL_HERE, AT), seenAt: AT };
    const isSigned = (change: Partial<ServerState>, by = ONE) => by.isSigned({ ...told, ...change });
    for (const seenAt of [AT - 30_000, AT, AT + 30_000]) expect(isSigned({ seenAt })).toBeTrue();
    const others: Partial<ServerState>[] = [
      { seenAt: AT + 30_001 },
      { seenAt: AT - 30_001 },
      { id: "two" },
      { name: "web-2" },
      { adminUrl: "http://192.0.2.1:8090" },
      { adminUrl: null },
      { adminUrl: undefined },
      { signedAt: AT + 1 },
      { signature: "x".repeat(43) },
    ];
    for (const change of others) expect([change, isSigned(change)]).toEqual([change, false]);
    expect(isSigned({}, OTHER)).toBeFalse();
    const { signedAt: _at, signature: _signature, ...unsigned } = told;
    expect(ONE.isSigned(unsigned)).toBeFalse();
  });

  test("the signature of a response is of the request and of every byte", () => {
    const signature = ONE.responseSignature("Petstore-Server 1", '{"a":1}');
    expect(ONE.isResponse(signature, "Petstore-Server 1", '{"a":1}')).toBeTrue();
    expect(ONE.isResponse(signature, "Petstore-Server 2", '{"a":1}')).toBeFalse();
    expect(ONE.isResponse(signature, "Petstore-Server 1", '{"a":2}')).toBeFalse();
    expect(OTHER.isResponse(signature, "Petstore-Server 1", '{"a":1}')).toBeFalse();
  });

  test("after a rotation the secret signs anew, and what the one before signed is valid for 10 seconds", () => {
    jest.useFakeTimers();
    const secret = secretOf(1);
    secret.replace(Buffer.alloc(32, 2).toString("base64url"));
    const [before, after] = [ONE, OTHER].map((each) => each.responseSignature("", ""));
    expect(secret.responseSignature("", "")).toBe(after ?? "");
    expect([before, after].map((each = "") => secret.isResponse(each, "", ""))).toEqual([true, true]);
    jest.advanceTimersByTime(10_000);
    jest.useRealTimers();
    expect([before, after].map((each = "") => secret.isResponse(each, "", ""))).toEqual([false, true]);
  });

  test("a signed request is valid for its listener, method, path and query, for 30 seconds, whichever clock is ahead", () => {
    const request = { to: URL_HERE, method: "GET", target: "/api/requests?limit=5", at: AT };
    const authorization = ONE.authorizationOf(request);
    const isValid = (change: object, by = ONE) => by.isAuthorized(authorization, { ...request, ...change });
    for (const at of [AT - 30_000, AT, AT + 30_000]) expect(isValid({ at })).toBeTrue();
    for (const at of [AT - 30_001, AT + 30_001]) expect(isValid({ at })).toBeFalse();
    expect(isValid({ method: "POST" })).toBeFalse();
    expect(isValid({ to: "http://127.0.0.1:8091" })).toBeFalse();
    expect(isValid({ target: "/api/requests?limit=50" })).toBeFalse();
    expect(isValid({}, OTHER)).toBeFalse();
    expect(ONE.authorizationOf(request)).not.toBe(authorization);
    for (const wrong of ["", "Petstore-Server", "Bearer x", `${authorization}x`, authorization.slice(0, -1)])
      expect(ONE.isAuthorized(wrong, request)).toBeFalse();
  });

  test("a damaged secret is an error", () => {
    for (const damaged of ["", "short"]) expect(() => new ServerSecret(damaged)).toThrow("is damaged");
  });
});

describe("proveServer", async () => {
  const service = await useAdminService();
  const prove = (query: string) => service.admin(`/api/session/proof${query}`, { token: null });

  test("responds without a token, with what the secret in the database signs, also after a restart", async () => {
    const secret = await ServerSecret.open(service.app.settings);
    for (const restarts of [false, true]) {
      if (restarts) await service.restart();
      const nonce = newNonce();
      const { status, json } = await prove(`?nonce=${nonce}`);
      expect(status).toBe(200);
      expect(
        secret.isProof(String(json["proof"]), nonce, { ...HERE, adminUrl: service.adminUrl }),
      ).toBeTrue();
    }
  });

  test.each([
    "",
    "?nonce=",
    "?nonce=short",
    `?nonce=${"x".repeat(65)}`,
    "?nonce=not%20base64url,%20but%20long",
  ])("proof%s is 400", async (query) => {
    const { status, json } = await prove(query);
    expect([status, json["code"]]).toEqual([400, "invalid_parameter"]);
  });

  test("the secret is not among the settings that operators see", async () => {
    const secret = await service.app.settings.readSecret();
    expect(secret).toMatch(/^[\w-]{43}$/);
    const { text } = await service.admin("/api/settings");
    expect(text).not.toContain(secret ?? "");
    expect(Object.values(await service.app.settings.readSettings())).not.toContain(secret ?? "");
  });
});
