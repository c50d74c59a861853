import { describe, expect, test } from "bun:test";
import { hostname } from "node:os";
import { formatTime } from "../../src/text/formatting.ts";
import { SETTINGS } from "../../src/config/options.ts";
import type { KeyStore } from "../../src/domain/ports.ts";
import { NO_ACTIVITY, type ServerState } from "../../src/domain/servers.ts";
import { requestHandlers } from "../../src/operator/handlers/requests.ts";
import type { RequestPage } from "../../src/operator/operations.ts";
import { askForRequests, reasonNotToAsk } from "../../src/operator/server-requests.ts";
import { ServerSecret } from "../../src/operator/server-secret.ts";
import { parseConfig } from "../config/parsing.ts";
import { startAdminService, useAdminService } from "./admin-service.ts";

const service = await useAdminService();

async function items(query = ""): Promise<Record<string, unknown>[]> {
  const { items } = await service.ok(`/api/requests?${query}`);
  return items as Record<string, unknown>[];
}

describe("listRequests", () => {
  test("finds a request by the id that the client quotes, without secrets, query and body", async () => {
    const headers = { "X-Request-Id": "quoted", "User-Agent": `shop ${service.key} pet_admin_S3cret` };
    await service.call({ method: "POST", path: `/pets?name=S3cret`, headers, body: { name: "S3cret" } });
    const [found, ...others] = await items("requestId=quoted");
    expect(others).toEqual([]);
    expect(found).toMatchObject({
      requestId: "quoted",
      keyId: 1,
      method: "POST",
      path: "/v1/pets",
      operation: "createPet",
      status: 400,
      code: "invalid_body",
      address: "127.0.0.1",
      userAgent: "shop pet_live_… pet_admin_…",
    });
    expect(Bun.inspect(found)).not.toMatch(/S3cret|Secret/);
  });

  test("has pages, newest first, that leave out none", async () => {
    for (let i = 0; i < 7; i++)
      await service.call({ path: "/pets", headers: { "X-Request-Id": `page-${i}` } });
    const ids: unknown[] = [];
    let cursor = "";
    do {
      const page = await service.ok(`/api/requests?operation=listPets&limit=3${cursor}`);
      ids.push(...(page["items"] as { requestId: string }[]).map(({ requestId }) => requestId));
      cursor = page["nextCursor"] === null ? "" : `&cursor=${String(page["nextCursor"])}`;
    } while (cursor !== "");
    expect(ids).toEqual([6, 5, 4, 3, 2, 1, 0].map((i) => `page-${i}`));
  });

  test("takes a class of statuses, a period, and rejects what is none", async () => {
    const now = service.clock.now();
    expect((await items("status=4xx")).every(({ status }) => Number(status) >= 400)).toBe(true);
    expect(await items("status=5xx")).toEqual([]);
    expect(await items(`until=${formatTime(now - 60_000)}`)).toEqual([]);
    expect((await items(`since=${formatTime(now - 60_000)}&keyId=1`)).length).toBeGreaterThan(7);
    for (const query of ["status=6xx", "status=4", "slowerThanMs=0", "operation=none", "cursor=x"])
      expect((await service.admin(`/api/requests?${query}`)).status).toBe(400);
  });

  test("takes an address as operators have it: IPv6 in full, as its network, or otherwise written", async () => {
    const { trustedProxies } = parseConfig({ "trust-proxy": ["127.0.0.1"] });
    const proxied = await startAdminService({}, { trustedProxies });
    const headers = { "X-Forwarded-For": "2001:db8::abcd:1" };
    await proxied.call({ path: "/pets", headers });
    const found = async (address: string) =>
      Object(await proxied.ok(`/api/requests?address=${encodeURIComponent(address)}`))["items"].length;
    for (const address of ["2001:db8::abcd:1", "2001:DB8:0:0:1::", "2001:db8:0:0::/64", "2001:db8::/64"])
      expect([address, await found(address)]).toEqual([address, 1]);
    for (const address of ["2001:db8:1::1", "192.0.2.7", "::1"])
      expect([address, await found(address)]).toEqual([address, 0]);
    for (const address of ["1.2.3", "192.0.2.7/64", "shop"])
      expect((await proxied.admin(`/api/requests?address=${address}`)).status).toBe(400);
    await proxied.stop();
  });

  test("says which server it is and how far back it goes, or that nothing is kept", async () => {
    const { servers } = await service.ok("/api/requests");
    expect(servers).toEqual([
      {
        id: expect.any(String),
        name: expect.stringMatching(/:\d+$/),
        problem: null,
        since: expect.any(String),
      },
    ]);
    const off = await startAdminService({}, { requestLogBytes: 0 });
    await off.call({ path: "/pets" });
    expect(await off.ok("/api/requests")).toMatchObject({
      items: [],
      servers: [
        {
          problem: "the request log is off; restart the server without --request-log 0 to turn it on",
          since: null,
        },
      ],
    });
    await off.stop();
  });

  test("is for operators and signed requests of servers, which can do nothing else", async () => {
    const secret = await ServerSecret.open(service.app.settings);
    const to = service.adminUrl;
    const signed = (target: string, change: { readonly at?: number; readonly to?: string } = {}) => {
      const request = { to, method: "GET", target, at: service.clock.now(), ...change };
      const headers = { Authorization: secret.authorizationOf(request) };
      return service.admin(target, { token: null, headers });
    };
    expect((await service.admin("/api/requests", { token: null })).status).toBe(401);
    const response = await signed("/api/requests?scope=server");
    expect(response.status).toBe(200);
    expect(response.headers.get("petstore-signature")).toMatch(/^[\w-]{43}$/);
    expect((await service.admin("/api/requests")).headers.get("petstore-signature")).toBeNull();
    expect((await signed("/api/requests", { at: service.clock.now() - 31_000 })).status).toBe(401);
    expect((await signed("/api/keys")).status).toBe(401);
    // Another server has got it, and sends it on.
    expect((await signed("/api/requests", { to: "http://192.0.2.1:8090" })).status).toBe(401);
  });
});

const SECRET = new ServerSecret(Buffer.alloc(32).toString("base64url"));
const ask = (server: Partial<ServerState>) =>
  askForRequests({ ...OTHER, ...server }, {}, { secret: SECRET, clock: { now: Date.now }, tls: {} });

const SELF = { id: "self", name: hostname(), version: "1", startedAt: 0 };
const OTHER: ServerState = { ...SELF, ...NO_ACTIVITY, id: "other", name: "web-2", seenAt: 0 };

const KEY = { name: "shop", plan: "free", access: "write", labels: [], createdAt: 0 } as const;
const NO_KEYS = { getKeys: () => [] } as Partial<KeyStore> as KeyStore;

describe("several servers", () => {
  const item = (id: bigint, server = "other") =>
    ({ id, server, requestId: `${id}` }) as RequestPage["items"][number];
  const list = (answer: RequestPage | string, limit: number, unreadable = 0, keys = NO_KEYS) =>
    requestHandlers({
      requestLog: undefined,
      keys,
      servers: { self: SELF, list: () => [{ ...OTHER, id: "self" }, OTHER], lost: () => [] },
      askForRequests: async (_server, query) => {
        expect(query).toEqual({ limit, status: "5xx", scope: "server" });
        return typeof answer === "string" ? answer : { body: answer, unreadable };
      },
    }).listRequests({ id: undefined, body: undefined, query: { limit, status: "5xx" } } as never);
  const page = { nextCursor: null, servers: [{ id: "other", name: "web-2", problem: null, since: null }] };

  test("are asked for the same, and cut to one page", async () => {
    const result = await list({ ...page, items: [item(3n), item(2n), item(1n)] }, 2);
    expect(result.items.map(({ id }) => id)).toEqual([3n, 2n]);
    expect(result.nextCursor).not.toBeNull();
    expect(result.servers.map(({ id, problem }) => [id, problem])).toEqual([
      ["self", "the request log is off; restart the server without --request-log 0 to turn it on"],
      ["other", null],
    ]);
  });

  test("requests have the names of their keys, and none in an outage of the database", async () => {
    const items = [
      { ...item(3n), keyId: 7 },
      { ...item(2n), keyId: 8 },
      { ...item(1n), keyId: null },
    ];
    const named: Partial<KeyStore> = { getKeys: ([id = 0]) => [{ ...KEY, id }] };
    const { items: shown } = await list({ ...page, items }, 3, 0, named as KeyStore);
    expect(shown.map(({ keyName }) => keyName)).toEqual(["shop", null, null]);
    const failing: Partial<KeyStore> = { getKeys: () => Promise.reject(new Error("no connection")) };
    const { items: unnamed } = await list({ ...page, items }, 3, 0, failing as KeyStore);
    expect(unnamed).toEqual(items);
  });

  test("one that cannot be asked, and one that is another server, are named with the reason", async () => {
    expect((await list("does not respond", 2)).servers[1]).toMatchObject({ problem: "does not respond" });
    const servers = [{ ...page.servers[0], id: "third", name: "x" }];
    const result = await list({ ...page, items: [item(1n)], servers } as RequestPage, 2);
    expect(result.items).toEqual([]);
    const problem = expect.stringMatching(/^another server/);
    expect(result.servers[1]).toMatchObject({ id: "other", problem });
  });

  test("requests of another that this release cannot read hide no others, and are counted", async () => {
    const result = await list({ ...page, items: [item(1n)] }, 2, 3);
    expect(result.items.map(({ id }) => id)).toEqual([1n]);
    expect(result.servers[1]?.problem).toBe("3 rows are left out: this release cannot read them");
  });

  test("more than 50 are not asked, and are named", async () => {
    let asked = 0;
    const others = Array.from({ length: 53 }, (_, i) => ({ ...OTHER, id: `other-${i}` }));
    const { listRequests } = requestHandlers({
      requestLog: undefined,
      keys: NO_KEYS,
      servers: { self: SELF, list: () => others, lost: () => [] },
      askForRequests: async () => `asked ${++asked}`,
    });
    const { servers } = await listRequests({ id: undefined, body: undefined, query: {} } as never);
    expect([asked, servers.length]).toEqual([50, 54]);
    expect(servers.at(-1)?.problem).toBe("only 50 other servers are asked");
  });

  test("one that tells of others, or of their requests, is not believed", async () => {
    const servers = [...page.servers, { id: "third", name: "x", problem: null, since: null }];
    const result = await list({ ...page, servers, items: [item(2n, "third"), item(1n)] }, 2);
    expect(result.items.map(({ id }) => id)).toEqual([1n]);
    expect(result.servers.map(({ id }) => id)).toEqual(["self", "other"]);
  });

  const toldOf = (adminUrl: string | null | undefined, name = "web-2"): ServerState => {
    const identity = { ...SELF, id: "other", name };
    const signed = adminUrl ? SECRET.urlOf(identity, adminUrl, 0) : {};
    return { ...OTHER, ...identity, adminUrl, ...signed };
  };

  test.each<[string, ServerState, RegExp | undefined]>([
    ["has no listener", toldOf(null), /^it has no listener for operators: --admin-address is off$/],
    ["has just started", toldOf(undefined), /^it does not report where it listens .* it has just started/],
    ["listens on loopback of another machine", toldOf("http://127.0.0.1:8090"), /its own machine only/],
    ["listens on loopback of another machine", toldOf("http://[::1]:8090"), /its own machine only/],
    ["listens on loopback of this machine", toldOf("http://127.0.0.1:8090", hostname()), undefined],
    ["has no TLS", toldOf("http://192.0.2.1:8090"), /has no TLS$/],
    ["has TLS", toldOf("https://192.0.2.1:8090"), undefined],
    [
      "is told by somebody else",
      { ...toldOf("https://192.0.2.1:8090"), adminUrl: "https://192.0.2.2" },
      /^its entry in Valkey has no valid signature: it is of release 1.1.0 or earlier/,
    ],
  ])("of a server that %s it is known whether it is asked", (_, server, reason) => {
    const problem = reasonNotToAsk(server, { secret: SECRET, hasTls: true });
    if (reason === undefined) expect(problem).toBeUndefined();
    else expect(problem).toMatch(reason);
  });

  test("one that is gone does not respond", async () => {
    const reason = /does not respond \((?:ECONNREFUSED|ConnectionRefused)\)/;
    expect(await ask({ adminUrl: "http://127.0.0.1:1" })).toMatch(reason);
  });

  const signed = (body: string) => (request: Request) => {
    const signature = SECRET.responseSignature(request.headers.get("authorization") ?? "", body);
    return new Response(body, { headers: { "Petstore-Signature": signature } });
  };

  test.each<[string, (request: Request) => Response, RegExp]>([
    ["too much", () => new Response("x".repeat(2_000_000)), /the response has more than 1048576 bytes/],
    ["something else", signed("{}"), /unexpected response from .*, a server of version 1$/],
    ["what it has not signed", () => new Response("{}"), /does not sign its response/],
    ["an error", () => new Response("no", { status: 401 }), /responds 401/],
    ["nothing", () => new Response(new ReadableStream({ pull: () => new Promise(() => {}) })), /timeout/],
  ])("one that responds with %s is given up", async (_, answer, reason) => {
    using peer = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: answer, idleTimeout: 30 });
    const startedAt = performance.now();
    expect(await ask({ adminUrl: `http://127.0.0.1:${peer.port}` })).toMatch(reason);
    expect(performance.now() - startedAt).toBeLessThan(4_000);
  });

  test("one row that this release does not know hides no other", async () => {
    await service.call({ path: "/pets" });
    const { text } = await service.admin("/api/requests?limit=2");
    const answer = signed(text.replace('"method":"GET"', '"method":" "'));
    using peer = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: answer });
    const response = await ask({ adminUrl: `http://127.0.0.1:${peer.port}` });
    expect(response).toMatchObject({ unreadable: 1, body: { items: [{ method: "GET" }] } });
  });
});

test("--request-log takes megabytes, gigabytes and 0", () => {
  const { type } = SETTINGS["request-log"];
  const parsed = (...texts: string[]) => texts.map((text) => type.parse(text));
  expect(parsed("0", "1MB", "64MB", "1024MB")).toEqual([0, 2 ** 20, 2 ** 26, 2 ** 30]);
  const invalid = parsed("64", "1025MB", "1GB", "1KB", "0MB", "-1MB", "1.5MB", "");
  expect(invalid).toEqual(Array(8).fill(undefined));
  expect([0, 2 ** 25, 2 ** 30].map((bytes) => type.format?.(bytes))).toEqual(["0", "32MB", "1024MB"]);
  expect(type.hint?.("64")).toBe("did you mean 64MB?");
});
