import { describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { bearer } from "../bearer.ts";
import { version } from "../../package.json" with { type: "json" };
import { ADMIN_OPERATIONS, type AdminOperation } from "../../src/operator/operations.ts";
import { createLog } from "../../src/observe/log.ts";
import { sendRaw } from "../http/raw.ts";
import { disposableDirectory } from "../disposable-directory.ts";
import { cookieOf, sessionOf, startAdminService, TOKEN, useAdminService } from "./admin-service.ts";
import { until } from "../timing.ts";

const service = await useAdminService({ hostnames: ["admin.example.com"] });

const OPERATIONS = Object.entries<AdminOperation>(ADMIN_OPERATIONS);
const pathOf = ({ path }: AdminOperation) => `/api${path.replace(/\{\w+\}/, "1")}`;

const OWN = () => ({ Origin: service.adminUrl, "Sec-Fetch-Site": "same-origin" });
const signIn = (to = service, headers: Record<string, string> = OWN()) =>
  to.signIn({ token: TOKEN }, headers);

describe("without the token", () => {
  const operations = OPERATIONS.filter(([, { needsNoToken }]) => !needsNoToken);
  const paths = ["/api", "/api/", "/api/nothing", "/api/openapi.json", "/metrics"];
  test.each([
    ...operations.map(([id, operation]) => [id, operation.method, pathOf(operation)] as const),
    ...paths.map((path) => [path, "GET", path] as const),
  ])("%s is 401", async (_, method, path) => {
    const response = await service.admin({ method, path, token: null });
    expect(response).toMatchObject({ status: 401, json: { code: "not_signed_in", status: 401 } });
    expect(response.headers.get("www-authenticate")).toBe('Bearer realm="petstore admin"');
  });

  test("/livez and /readyz respond", async () => {
    for (const path of ["/livez", "/readyz", "/readyz?verbose"]) {
      expect((await service.admin(path, { token: null })).status).toBe(200);
    }
  });

  test("nothing of the admin API is on the public port", async () => {
    const origin = new URL(service.url).origin;
    for (const path of ["/api/keys", "/api/session", "/livez", "/readyz", "/metrics"]) {
      const response = await fetch(origin + path, { headers: bearer(TOKEN) });
      expect(response.status).toBe(404);
    }
  });
});

describe("with the token", () => {
  test("the name of the scheme is case-insensitive", async () => {
    const headers = { Authorization: `bearer ${TOKEN}` };
    expect((await service.admin("/api/keys", { token: null, headers })).status).toBe(200);
  });

  test.each(["Bearer a-wrong-token", "Basic dXNlcjpwYXNzd29yZA=="])(
    "%s is 401 invalid_token",
    async (Authorization) => {
      const response = await service.admin("/api/keys", { token: null, headers: { Authorization } });
      expect(response).toMatchObject({ status: 401, json: { code: "invalid_token" } });
    },
  );
});

describe("a session", () => {
  test("the token is traded for a cookie that scripts cannot read and other sites do not send", async () => {
    const { status, headers, json } = await signIn();
    expect(status).toBe(200);
    expect(json).toEqual({
      signedIn: true,
      operator: { id: 1, name: "bootstrap", role: "admin" },
      environment: "production",
      version,
      secret: expect.stringMatching(/^[\w-]{43}$/),
    });
    const { port } = new URL(service.adminUrl);
    expect(headers.get("set-cookie")).toMatch(
      new RegExp(`^petstore-admin-${port}=[\\w.-]+; Path=/; Max-Age=43200; HttpOnly; SameSite=Strict$`),
    );
  });

  test("reads and writes with the cookie are the console's in the audit trail", async () => {
    const session = sessionOf(await signIn());
    const headers = { ...OWN(), ...session, Cookie: `other=1; ${session.Cookie}` };
    expect(await service.ok("/api/session", { token: null, headers })).toMatchObject({ signedIn: true });
    const body = { name: "by the console", plan: "free" };
    await service.ok("POST /api/keys", { token: null, headers, body });
    const { items } = await service.ok("/api/audit?actor=console&limit=2");
    const actor = { operator: "bootstrap", kind: "console", name: "127.0.0.1" };
    expect(items).toMatchObject([
      { action: "key.created", actor },
      { action: "admin.signed-in", actor },
    ]);
  });

  test("signing out ends it and removes the cookie", async () => {
    const headers = { ...OWN(), ...sessionOf(await signIn()) };
    const out = await service.admin("DELETE /api/session", { token: null, headers });
    expect(out.status).toBe(204);
    expect(out.headers.get("set-cookie")).toContain("=; Path=/; Max-Age=0;");
    expect((await service.admin("/api/keys", { token: null, headers })).status).toBe(401);
    expect(await service.ok("/api/session", { token: null, headers })).toEqual({ signedIn: false });
  });
});

describe("pages elsewhere", () => {
  test.each([
    ["of another site", { "Sec-Fetch-Site": "cross-site", Origin: "http://evil.example" }],
    ["of another port of this machine, which sends the cookie", { "Sec-Fetch-Site": "same-site" }],
    ["in a sandbox", { Origin: "null" }],
  ])("one %s can neither read nor write", async (_, headers) => {
    const sent = { token: null, headers: { ...headers, ...sessionOf(await signIn()) } };
    const reads = ["/api/keys", "/api/session", "/metrics"];
    const writes = ["POST /api/keys", "POST /api/keys/1/revoke", "DELETE /api/session"];
    for (const request of [...reads, ...writes]) {
      const body = request === "POST /api/keys" && { body: { name: "stolen", plan: "free" } };
      const { status, text, headers: received } = await service.admin(request, { ...sent, ...body });
      expect([request, status, JSON.parse(text).code]).toEqual([request, 403, "forbidden_origin"]);
      expect(received.get("access-control-allow-origin")).toBeNull();
    }
    const { items } = await service.ok("/api/keys?search=stolen");
    expect(items).toEqual([]);
  });

  test("a preflight allows nothing", async () => {
    const headers = { Origin: "http://evil.example", "Access-Control-Request-Method": "POST" };
    const { status, headers: received } = await service.admin("OPTIONS /api/keys", { token: null, headers });
    expect(status).toBe(403);
    expect([...received.keys()].filter((name) => name.startsWith("access-control"))).toEqual([]);
  });
});

/** The code of a 403; undefined for another status. Without Host the request is HTTP/1.0. */
async function forbidden(fields: Record<string, string>, method = "GET", path = "/api/session") {
  const lines = Object.entries(fields).map(([name, value]) => `${name}: ${value}\r\n`);
  const head = `${method} ${path} HTTP/1.${"Host" in fields ? 1 : 0}\r\nContent-Length: 0\r\n`;
  const response = await sendRaw(service.adminUrl, `${head}${lines.join("")}\r\n`);
  return /^HTTP\/1.1 403 [^]*"code":"(\w+)"/.exec(response)?.[1];
}

describe("the host", () => {
  const addresses = ["127.0.0.1:8090", "127.0.0.1", "[::1]:8090", "[::1]", "10.1.2.3:1"];
  const own = ["localhost:8090", "LocalHost", "Admin.Example.com:443"];
  test.each([...addresses, ...own])("%s is an own one", async (Host) => {
    expect(await forbidden({ Host })).toBeUndefined();
  });

  const names = ["evil.example", "evil.example:8090", "localhost.evil.example", "127.0.0.1.evil.example"];
  const lookalikes = ["127.0.0.1x", "localhost.", "0177.0.0.1", "0x7f.1", "evil.localhost"];
  test.each([...names, ...lookalikes])("%s is not, since it can be pointed here", async (Host) => {
    for (const path of ["/api/keys", "/", "/metrics"])
      expect(await forbidden({ Host }, "GET", path)).toBe("forbidden_host");
    expect(await forbidden({ Host }, "GET", "/livez")).toBeUndefined();
  });

  test("may be missing", async () => expect(await forbidden({})).toBeUndefined());
});

describe("the origin", () => {
  const Host = "127.0.0.1:8090";
  const Cookie = "a=b";
  const Authorization = "Bearer x";
  const isOther = async (method: string, fields: Record<string, string>) =>
    (await forbidden(fields, method)) === "forbidden_origin";

  const ports = ["http://127.0.0.1:8091", "http://127.0.0.1", "http://localhost:8090"];
  const others = [...ports, "http://evil.example", `http://${Host}.evil.example`, "null", "file://"];

  test.each(["GET", "POST", "PATCH", "DELETE"])("%s from this origin, and from others", async (method) => {
    const own = { Host, Origin: "http://127.0.0.1:8090", "Sec-Fetch-Site": "same-origin", Cookie };
    expect(await isOther(method, own)).toBeFalse();
    // A proxy that terminates TLS changes the scheme only.
    expect(await isOther(method, { Host, Origin: "https://127.0.0.1:8090" })).toBeFalse();
    for (const Origin of others) expect(await isOther(method, { Host, Origin })).toBeTrue();
    for (const site of ["cross-site", "same-site"])
      expect(await isOther(method, { Host, "Sec-Fetch-Site": site, Authorization })).toBeTrue();
    // A sandboxed page, through a proxy that removes Host.
    expect(await isOther(method, { Origin: "null", Cookie })).toBeTrue();
  });

  test("an address that a user typed may be read, and so may a page of this origin read", async () => {
    for (const site of ["none", "same-origin"])
      expect(await isOther("GET", { Host, "Sec-Fetch-Site": site, Cookie })).toBeFalse();
  });

  test("a write with a cookie needs Origin or Sec-Fetch-Site; a program with a token does not", async () => {
    expect(await isOther("POST", { Host, Cookie })).toBeTrue();
    expect(await isOther("GET", { Host, Cookie })).toBeFalse();
    expect(await isOther("POST", { Host })).toBeFalse();
    expect(await isOther("POST", { Host, Cookie, Authorization })).toBeFalse();
  });
});

test("/metrics responds without the token if the server is told so", async () => {
  const open = await startAdminService({ areMetricsPublic: true });
  const { status, text } = await open.admin("/metrics", { token: null });
  expect(status).toBe(200);
  expect(text).toContain("# TYPE petstore_http_requests_total counter");
  expect((await open.admin("/api/keys", { token: null })).status).toBe(401);
  await open.stop();
});

test("the token in --metrics-token-file is that of an operator who may only read /metrics", async () => {
  const directory = disposableDirectory();
  const metricsTokenFile = directory.path("metrics-token");
  const token = "0".repeat(48);
  writeFileSync(metricsTokenFile, `${token}\n`);
  const own = await startAdminService({ metricsTokenFile });
  const status = async (path: string) => (await own.admin(path, { token })).status;
  for (const restart of [() => {}, () => own.restart()]) {
    await restart();
    expect([await status("/metrics"), await status("/api/keys"), await status("/api/operators")]).toEqual([
      200, 403, 403,
    ]);
    expect(await own.ok("/api/operators")).toMatchObject({
      items: [{ name: "bootstrap" }, { name: "metrics", role: "metrics" }],
    });
  }
  await own.admin("POST /api/operators/2/revoke");
  await own.restart();
  expect(await status("/metrics")).toBe(401);
  await own.stop();
  directory.remove();
});

test("a cookie of the same name that a page on another port has added does not sign the operator out", async () => {
  const session = sessionOf(await signIn());
  const { Cookie: own } = session;
  const [name = ""] = own.split("=");
  const other = cookieOf((await signIn()).headers);
  const status = async (Cookie: string) =>
    (await service.admin("/api/keys", { token: null, headers: { ...session, Cookie } })).status;
  expect(await status(`${name}=x; ${other}; ${own}`)).toBe(200);
  expect(await status(`${own}; ${name}=x`)).toBe(200);
  expect(await status(`${name}=x; ${other}`)).toBe(401);
  const after = (others: number) => status(`${name}=x; `.repeat(others) + own);
  expect([await after(199), await after(200)]).toEqual([200, 401]);
  const headers = { ...OWN(), ...session, Cookie: `${name}=x; ${own}` };
  await service.admin("DELETE /api/session", { token: null, headers });
  expect(await status(own)).toBe(401);
});

test("behind a proxy that terminates TLS the cookie is Secure", async () => {
  const Origin = service.adminUrl.replace("http:", "https:");
  const signedIn = await signIn(service, { Origin, "Sec-Fetch-Site": "same-origin" });
  expect(signedIn.headers.get("set-cookie")).toEndWith("; HttpOnly; SameSite=Strict; Secure");
});

test("the audit trail and the log get at most 20 wrong tokens in an hour, and the number of the others that were compared", async () => {
  const events: Record<string, unknown>[] = [];
  const log = createLog({ write: (line) => events.push(JSON.parse(line)) });
  const attacked = await startAdminService({}, {}, undefined, log);
  let guesses = 0;
  const guess = () => attacked.admin("/api/keys", { token: `guess-${guesses++}` });
  for (let minute = 0; minute < 3; minute++, attacked.clock.advance(60_000))
    await Promise.all(Array.from({ length: 100 }, guess));
  const entries = async () =>
    Object(await attacked.ok("/api/audit?action=admin.sign-in-failed&limit=100")).items;
  await until(async () => (await entries()).length === 20, 5_000);
  attacked.clock.advance(3_600_000);
  await guess();
  await until(async () => (await entries()).length > 20, 5_000);
  const [newest, ...others] = await entries();
  const actor = { kind: "admin API", name: "127.0.0.1" };
  expect(newest).toMatchObject({ actor, target: null, after: { unrecordedBefore: 40 } });
  expect(others).toHaveLength(20);
  expect(others).toContainEqual(expect.objectContaining({ after: null }));
  const logged = events.filter(({ event }) => event === "admin.sign-in-failed");
  expect(logged).toHaveLength(21);
  expect(logged[0]).toMatchObject({ address: "127.0.0.1", unrecorded: 0 });
  expect(logged[20]).toMatchObject({ address: "127.0.0.1", unrecorded: 40 });
  await attacked.stop();
});

test("20 wrong tokens block all tokens for the rest of the minute; sessions go on", async () => {
  const blocked = await startAdminService();
  const session = sessionOf(await signIn(blocked, {}));
  const status = async (...request: Parameters<typeof blocked.admin>) =>
    (await blocked.admin(...request)).status;
  for (let i = 0; i < 20; i++) expect(await status("/api/keys", { token: `guess-${i}` })).toBe(401);
  const { headers, ...rejected } = await blocked.admin("/api/keys");
  expect(rejected).toMatchObject({ status: 429, json: { code: "too_many_attempts" } });
  expect(headers.get("retry-after")).toBe("60");
  expect((await signIn(blocked, {})).status).toBe(429);
  expect(await status("/api/session")).toBe(429);
  expect(await status("/api/keys", { token: null, headers: session })).toBe(200);
  blocked.clock.advance(60_000);
  expect(await status("/api/keys")).toBe(200);
  await blocked.stop();
});
