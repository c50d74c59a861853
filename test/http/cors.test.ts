import { describe, expect, test } from "bun:test";
import { bearer } from "../bearer.ts";
import { type Service, startService, useService } from "../service.ts";

const APP = "https://app.example.com";
const on = await useService({ corsOrigins: [APP, "http://localhost:3000"] });
const off = await useService();

const preflightOf = (origin: string, method = "POST") => ({
  Origin: origin,
  "Access-Control-Request-Method": method,
  "Access-Control-Request-Headers": "authorization,content-type,idempotency-key",
});

function send(service: Service, path: string, init: RequestInit = {}): Promise<Response> {
  return fetch(new URL(path, service.url), { redirect: "manual", ...init });
}

const corsHeadersOf = ({ headers }: Response) =>
  Object.fromEntries([...headers].filter(([name]) => name.startsWith("access-control-")));

const ALLOWED = {
  "access-control-allow-origin": APP,
  "access-control-expose-headers":
    "X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset, Retry-After, Link, Location, ETag, X-Request-Id, " +
    "Deprecation, Sunset, Idempotent-Replayed, Date",
};

describe("with --cors-origin", () => {
  test("a preflight of an allowed origin is 204 without a key and without cookies", async () => {
    const response = await send(on, "/v1/pets", { method: "OPTIONS", headers: preflightOf(APP) });
    expect(response.status).toBe(204);
    expect(corsHeadersOf(response)).toEqual({
      ...ALLOWED,
      "access-control-allow-methods": "GET, HEAD, POST, PATCH, OPTIONS",
      "access-control-allow-headers":
        "Authorization, Content-Type, Idempotency-Key, If-Match, If-None-Match, X-Request-Id",
      "access-control-max-age": "7200",
    });
    expect(response.headers.get("vary")).toBe("Origin");
    expect(response.headers.get("x-request-id")).toBeTruthy();
  });

  test("a preflight counts neither against a key nor against the address", async () => {
    const limits = { perMinute: 2, perDay: 2 };
    const policy = { plans: { anonymous: limits } };
    const limited = await startService({ corsOrigins: [APP], policy });
    const { secret } = await limited.newKey({ limits });
    const headers = { ...preflightOf(APP, "GET"), ...bearer(secret) };
    for (let i = 0; i < 5; i++) {
      expect((await send(limited, "/v1/pets", { method: "OPTIONS", headers })).status).toBe(204);
    }
    const pets = await send(limited, "/v1/pets", { headers: bearer(secret) });
    expect(pets.headers.get("x-ratelimit-remaining")).toBe("1");
    const anonymous = await send(limited, "/v1/pets", { headers: { Origin: APP } });
    expect(anonymous.status).toBe(401);
    expect(anonymous.headers.get("x-ratelimit-remaining")).toBe("1");
    await limited.stop();
  });

  test.each([
    ["304", "/v1/pets", { "If-None-Match": "*" }],
    ["401", "/v1/pets", { Authorization: "" }],
    ["200 of a page", "/openapi.json", {}],
  ])("a %s can be read by an allowed origin", async (status, path, added) => {
    const headers = { ...bearer(on.key), Origin: APP, ...added };
    const response = await send(on, path, { headers });
    expect(response.status).toBe(Number.parseInt(status, 10));
    expect(corsHeadersOf(response)).toEqual(ALLOWED);
    expect(response.headers.get("vary")).toContain("Origin");
  });

  test.each([
    "https://evil.example",
    `${APP}.evil.example`,
    "http://app.example.com",
    `${APP}:8443`,
    "null",
    "*",
  ])("the origin %s is not allowed, and a cache is told that it matters", async (origin) => {
    const headers = { ...bearer(on.key), Origin: origin };
    const response = await send(on, "/v1/pets", { headers });
    expect(response.status).toBe(200);
    expect(corsHeadersOf(response)).toEqual({});
    expect(response.headers.get("vary")).toBe("Origin");
    const preflight = await send(on, "/v1/pets", { method: "OPTIONS", headers: preflightOf(origin) });
    expect(preflight.status).toBe(401);
    expect(corsHeadersOf(preflight)).toEqual({});
  });

  test("OPTIONS that is no preflight needs a key as before", async () => {
    const response = await send(on, "/v1/pets", { method: "OPTIONS", headers: { Origin: APP } });
    expect(response.status).toBe(401);
    expect(corsHeadersOf(response)).toEqual(ALLOWED);
  });
});

test("by default no response has a CORS header, and a preflight needs a key", async () => {
  const preflight = await send(off, "/v1/pets", { method: "OPTIONS", headers: preflightOf(APP) });
  expect(preflight.status).toBe(401);
  const headers = { ...bearer(off.key), Origin: APP };
  for (const response of [preflight, await send(off, "/v1/pets", { headers })]) {
    expect(corsHeadersOf(response)).toEqual({});
    expect(response.headers.get("vary")).toBeNull();
  }
});
