import { describe, expect, test } from "bun:test";
import { SERVER_SECRET } from "../../src/domain/operators.ts";
import { newNonce, ServerSecret } from "../../src/operator/server-secret.ts";
import { useAdminService } from "./admin-service.ts";

const secretOf = (byte: number) => new ServerSecret(Buffer.alloc(32, byte).toString("base64url"));
const ONE = secretOf(1);
const OTHER = secretOf(2);
const URL_HERE = "http://127.0.0.1:8090";
const AT = Date.UTC(2026, 10, 16);

describe("the secret of the servers", () => {
  test("a proof is of one secret, nonce and URL", () => {
    const nonce = newNonce();
    const proof = ONE.proofOf(nonce, URL_HERE);
    expect(ONE.isProof(proof, nonce, URL_HERE)).toBeTrue();
    expect(OTHER.isProof(proof, nonce, URL_HERE)).toBeFalse();
    expect(ONE.isProof(proof, newNonce(), URL_HERE)).toBeFalse();
    expect(ONE.isProof(proof, nonce, "http://127.0.0.1:8091")).toBeFalse();
    for (const wrong of ["", "x", proof.slice(1), `${proof}x`])
      expect(ONE.isProof(wrong, nonce, URL_HERE)).toBeFalse();
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
      expect(secret.isProof(String(json["proof"]), nonce, service.adminUrl)).toBeTrue();
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
    const { [SERVER_SECRET]: secret = "none" } = await service.app.settings.readSettings();
    expect(secret).toMatch(/^[\w-]{43}$/);
    const { text } = await service.admin("/api/settings");
    expect(text).not.toContain(secret);
    expect(text).not.toContain(SERVER_SECRET);
  });
});
