import { afterAll, describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { Petstore } from "../../../src/client/index.ts";
import { Fleet } from "../../../trials/harness/fleet.ts";
import {
  type Header,
  HttpConnection,
  type HttpRequest,
  type HttpResponse,
  NoResponse,
  sendOnce,
} from "../../../trials/harness/http-connection.ts";
import {
  haproxy,
  type LoadBalancer,
  type LoadBalancerKind,
  nginx,
  startLoadBalancer,
} from "../../../trials/harness/load-balancer.ts";
import { postgresUrl } from "../../../trials/harness/postgres.ts";
import { until } from "../../timing.ts";
import { keyHeader, createPet, haproxyCommand, JSON_BODY, listPets } from "./tools.ts";

const PUBLIC_URL = "https://api.example.com/v1";

type Setup = Awaited<ReturnType<typeof start>>;

/** Three servers on one PostgreSQL, behind a load balancer, and a key whose limits are never reached. */
async function start(kind: LoadBalancerKind) {
  const storage = ["--database-url", await postgresUrl()];
  // Only the load balancer's address is trusted: clients in these tests have others of 127.0.0.0/8.
  const flags = ["--public-url", PUBLIC_URL, "--trust-proxy", "127.0.0.1"];
  const fleet = await Fleet.start({ size: 3, storage, flags });
  const { key } = await fleet.createKey();
  return { fleet, balancer: await startLoadBalancer(kind, fleet.ports), key };
}

/** How a load balancer tells what it does with servers, and how it is told. */
interface Handling {
  /** Resolve when it sends the first server no more requests, and when it sends some again. */
  isOut(setup: Setup): Promise<unknown>;
  isBack(setup: Setup): Promise<unknown>;
  /** Takes the second server out by hand, until it is idle, and puts it back. */
  drain(setup: Setup): Promise<unknown>;
  restore(setup: Setup): Promise<unknown>;
  /** Whether it closes the clients' keep-alive connections then, even if a request is arriving. */
  readonly newConnections?: boolean;
}

const HAPROXY: Handling = {
  isOut: ({ balancer }) => balancer.logged(/Server petstore\/a is DOWN/),
  isBack: ({ balancer }) => balancer.logged(/Server petstore\/a is UP/),
  async drain({ balancer }) {
    await haproxyCommand(balancer, "set server petstore/b state drain");
    await until(async () => (await sessionsOf(balancer, "b")) === 0, 10_000);
  },
  async restore({ balancer }) {
    await haproxyCommand(balancer, "set server petstore/b state ready");
    await until(async () => (await sessionsOf(balancer, "b")) > 0, 10_000);
  },
};

async function sessionsOf(balancer: LoadBalancer, server: string): Promise<number> {
  const [header = "", ...rows] = (await haproxyCommand(balancer, "show stat petstore 4 -1")).split("\n");
  const column = header.replace(/^# /, "").split(",").indexOf("scur");
  return Number(rows.find((row) => row.startsWith(`petstore,${server},`))?.split(",")[column]);
}

const NGINX: Handling = {
  isOut: ({ balancer, fleet }) =>
    balancer.logged(new RegExp(`temporarily disabled.*127\\.0\\.0\\.1:${fleet.ports[0]}/`)),
  isBack: ({ fleet }) => until(() => openConnectionsTo(fleet.ports[0]) > 0, 10_000),
  async drain({ balancer, fleet }) {
    const server = new RegExp(`(server 127\\.0\\.0\\.1:${fleet.ports[1]} [^;]*);`);
    // From then on there are some, until the workers with the configuration before have ended.
    await until(() => openConnectionsTo(fleet.ports[1]) > 0, 10_000);
    balancer.reload((text) => text.replace(server, "$1 down;"));
    await until(() => openConnectionsTo(fleet.ports[1]) === 0, 10_000);
  },
  async restore({ balancer, fleet }) {
    balancer.reload((text) => text);
    await until(() => openConnectionsTo(fleet.ports[1]) > 0, 10_000);
  },
  newConnections: true,
};

const ESTABLISHED = "01";

function openConnectionsTo(port = 0): number {
  const suffix = `:${port.toString(16).toUpperCase().padStart(4, "0")}`;
  const lines = readFileSync("/proc/net/tcp", "utf8").trim().split("\n");
  return lines.filter((line) => {
    const [, local = "", , state] = line.trim().split(/\s+/);
    return local.endsWith(suffix) && state === ESTABLISHED;
  }).length;
}

const REX = '{"name":"Rex","categoryId":9007199254740993,"status":"available"}';

/** Set by each hop, or different in each response. */
const HOP_BY_HOP = new Set(["connection", "keep-alive", "date", "server", "x-request-id"]);
const RATE_LIMIT = ["x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset", "retry-after"];

/** What must be the same; of rate-limit headers, that they are numbers. */
function comparable({ status, headers, body }: HttpResponse) {
  const endToEnd = Object.entries(headers).filter(([name]) => !HOP_BY_HOP.has(name));
  const compared = endToEnd.map(([name, value]) => [
    name,
    RATE_LIMIT.includes(name) && /^\d+$/.test(value) ? "#" : value,
  ]);
  return { status, headers: Object.fromEntries(compared.toSorted()), body };
}

/** Responses through the load balancer have the same headers and the same bytes as those of a server. */
function unchangedResponseTests({ fleet, balancer, key }: Setup): void {
  const direct = (request: HttpRequest) => sendOnce(fleet.ports[0] ?? 0, request);
  const through = (request: HttpRequest) => sendOnce(balancer.port, request);
  const withKey = (request: HttpRequest): HttpRequest => ({
    ...request,
    headers: [keyHeader(key), ...(request.headers ?? [])],
  });
  const post = (body: string, ...headers: Header[]) =>
    withKey({ method: "POST", path: "/v1/pets", headers: [JSON_BODY, ...headers], body });

  async function expectSame(request: HttpRequest, status: number): Promise<HttpResponse> {
    const response = await through(request);
    expect(comparable(response)).toEqual(comparable(await direct(request)));
    expect(response.status).toBe(status);
    if (request.path.startsWith("/v1")) {
      expect(RATE_LIMIT.slice(0, 3).filter((name) => !/^\d+$/.test(response.headers[name] ?? ""))).toEqual(
        [],
      );
    }
    return response;
  }

  test("201, 200, HEAD and 304 are unchanged, and Link and Location have the public address", async () => {
    expect((await through(post(REX))).headers.location).toStartWith(`${PUBLIC_URL}/pets?id=`);
    await through(post(REX));
    const repeated = post(REX, ["Idempotency-Key", "once"]);
    await direct(repeated);
    expect((await expectSame(repeated, 201)).headers["idempotent-replayed"]).toBe("true");

    const list = { path: "/v1/pets?limit=1" };
    const { headers } = await expectSame(withKey(list), 200);
    expect(headers.link).toStartWith(`<${PUBLIC_URL}/pets?`);
    const head = await expectSame(withKey({ ...list, method: "HEAD" }), 200);
    expect(head.headers["content-length"]).toBe(headers["content-length"]);
    await expectSame(withKey({ ...list, headers: [["If-None-Match", headers.etag ?? ""]] }), 304);
    await expectSame(withKey({ path: "/v1/pets/1" }), 200);
  });

  test("errors are unchanged: 400, 401, 404, 405, 415, 429", async () => {
    await expectSame(post("{"), 400);
    await expectSame({ path: "/v1/pets" }, 401);
    for (const path of ["/v1/pets/0", "/v1/nowhere", "/v1/pets/%31%2f", "/v1//pets", "/v1/pets/01"]) {
      await expectSame(withKey({ path }), 404);
    }
    expect((await expectSame(withKey({ method: "DELETE", path: "/v1/pets" }), 405)).headers.allow).toContain(
      "GET",
    );
    await expectSame(withKey({ method: "OPTIONS", path: "/v1/pets" }), 204);
    const text: Header = ["Content-Type", "text/plain"];
    await expectSame(withKey({ method: "POST", path: "/v1/pets", headers: [text], body: REX }), 415);
    const { key: small } = await fleet.createKey("enterprise", "--per-minute", "1", "--per-day", "1000");
    const limited = { path: "/v1/pets", headers: [keyHeader(small)] };
    await through(limited);
    expect((await expectSame(limited, 429)).headers["retry-after"]).toMatch(/^\d+$/);
  });

  test("413 comes from the server, for bodies of more than 16 KiB", async () => {
    for (const size of [16_385, 100_000]) {
      expect((await expectSame(post("x".repeat(size)), 413)).body).toContain('"body_too_large"');
    }
    expect((await through(post("x".repeat(16_384)))).status).toBe(400);
  });

  test("pages outside the API are unchanged", async () => {
    for (const path of ["/healthz", "/openapi.json", "/docs"]) await expectSame({ path }, 200);
  });
}

const CONNECTIONS = 4;

/**
 * Clients send requests during the change, the next one as soon as there is a response, and retry nothing. Every
 * request succeeds, and every pet exists once. `request` gives the nth request of all; pets that it creates have the
 * name. With `newConnections` each request has a connection of its own.
 */
async function expectNoErrors(
  setup: Setup,
  change: () => Promise<void>,
  request: (name: string, n: number) => HttpRequest,
  newConnections = false,
): Promise<void> {
  const { port } = setup.balancer;
  const name = crypto.randomUUID();
  const created: bigint[] = [];
  const failed: string[] = [];
  let sent = 0;
  const stopped = new AbortController();
  const sendRequests = async () => {
    let connection: HttpConnection | undefined;
    while (!stopped.signal.aborted) {
      const next = request(name, sent++);
      try {
        if (!connection?.isOpen) connection = await HttpConnection.open(port);
        const { status, body } = await connection.send(next);
        if (status === 201) created.push(BigInt(JSON.parse(body).id));
        else if (status !== 200) failed.push(`${next.method} ${status} ${body}`);
      } catch (error) {
        if (!(error instanceof NoResponse)) throw error;
        failed.push(`${next.method} ${error.message}`);
        connection?.close();
      }
      if (newConnections) connection?.close();
    }
    connection?.close();
  };
  const connections = Array.from({ length: CONNECTIONS }, sendRequests);
  await change();
  stopped.abort();
  await Promise.all(connections);

  expect(failed.slice(0, 5)).toEqual([]);
  expect(created.length).toBeGreaterThan(0);
  const client = new Petstore({ baseUrl: `http://127.0.0.1:${port}/v1`, key: setup.key });
  const stored: bigint[] = [];
  for await (const pet of client.pets.list()) if (pet.name === name) stored.push(pet.id);
  expect(stored).toEqual(created.toSorted((a, b) => Number(a - b)));
}

const SETUPS = [
  ["HAProxy", HAPROXY, await start(haproxy)],
  ["nginx", NGINX, await start(nginx)],
] as const;
afterAll(async () => {
  for (const [, , { balancer }] of SETUPS) await balancer.stop();
  for (const [, , { fleet }] of SETUPS) await fleet.stop();
});

/** What a load balancer does with its documented configuration. */
describe.each(SETUPS)("%s", (_, { isOut, isBack, drain, restore, newConnections = false }, setup) => {
  const { fleet, balancer, key } = setup;

  unchangedResponseTests(setup);

  test("clients without a key are limited by their own address, whatever X-Forwarded-For they send", async () => {
    const remaining = async (from: string, ...forwardedFor: string[]) => {
      const headers = forwardedFor.map((value) => ["X-Forwarded-For", value] as const);
      const response = await sendOnce(balancer.port, { path: "/v1/pets", headers }, from);
      return Number(response.headers["x-ratelimit-remaining"]);
    };
    // Each of the three servers counts on its own.
    const forged = [[], ["203.0.113.7"], ["203.0.113.8, 127.0.0.1"], ["203.0.113.9", "127.0.0.1"]];
    const used: number[] = [];
    for (let i = 0; i < 12; i++) used.push(300 - (await remaining("127.0.0.9", ...(forged[i % 4] ?? []))));
    expect(used.filter((count) => count === 1).length).toBeWithin(1, 4);
    expect(Math.max(...used)).toBeWithin(4, 13);
    expect(await remaining("127.0.0.10", "127.0.0.9")).toBe(299);
  });

  test("SIGTERM under load: no request fails, the server is taken out, and put back when it responds again", async () => {
    const restart = async () => {
      const out = isOut(setup);
      await fleet.stopServer(0);
      await out;
      const back = isBack(setup);
      await fleet.startServer(0);
      await back;
    };
    const request = (name: string, n: number) =>
      n % 2 === 0 ? listPets(key) : createPet(key, name, `${name}-${n}`);
    await expectNoErrors(setup, restart, request);
  });

  test("a server that is drained by hand, and stopped when it is idle: no create is lost, with a key or without", async () => {
    const restart = async () => {
      await drain(setup);
      await fleet.stopServer(1);
      await fleet.startServer(1);
      await restore(setup);
    };
    // The requests have no Idempotency-Key, so nobody retries them.
    await expectNoErrors(setup, restart, (name) => createPet(key, name), newConnections);
  });
});
