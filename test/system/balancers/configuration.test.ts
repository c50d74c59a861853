import { afterEach, describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { connect } from "node:tls";
import { CertificateAuthority } from "../../../trials/harness/certificates.ts";
import { type HttpRequest, RawConnection, sendOnce } from "../../../trials/harness/http-connection.ts";
import {
  haproxy,
  type LoadBalancer,
  type LoadBalancerOptions,
  nginx,
} from "../../../trials/harness/load-balancer.ts";
import { startService } from "../../service.ts";
import { until } from "../../timing.ts";
import { createPet, listPets, startWithoutHealthChecks } from "./tools.ts";

const OK = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
/** The port of a service that nobody runs. A free port could become that of the load balancer itself. */
const UNUSED_PORT = 1;
/** More than twice as many as there are servers. */
const MAX_REQUESTS = 10;

const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close();
});

/** A server that is healthy for the load balancer. One that closes does so instead of a response, like a killed one. */
function startFakeServer(behaviour: "responds" | "closes") {
  /** The request lines, except those for /healthz, the connections that carried them, and those that are open. */
  const received: string[] = [];
  const connections = new Set<object>();
  const open = new Set<object>();
  const data = (socket: Bun.Socket, bytes: Buffer) => {
    const [line = ""] = bytes.toString("latin1").split("\r\n");
    if (line.includes(" /healthz ")) return void socket.write(OK);
    received.push(line);
    connections.add(socket);
    open.add(socket);
    if (behaviour === "responds") socket.write(OK);
    else socket.end();
  };
  const close = (socket: Bun.Socket) => void open.delete(socket);
  const server = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data, close } });
  closing.push(() => server.stop(true));
  return { port: server.port, received, connections, open };
}

/** Whether the handshake succeeds with this version of TLS at most. */
function accepts(port: number, maxVersion: "TLSv1.1" | "TLSv1.2" | "TLSv1.3"): Promise<boolean> {
  return new Promise((resolve) => {
    const versions = { minVersion: "TLSv1", maxVersion } as const;
    const socket = connect({ host: "127.0.0.1", port, ...versions, rejectUnauthorized: false }, () => {
      socket.destroy();
      resolve(true);
    });
    socket.on("error", () => resolve(false));
  });
}

describe.each([
  ["HAProxy", haproxy],
  ["nginx", nginx],
])("%s", (_, kind) => {
  async function start(servers: readonly number[], options?: LoadBalancerOptions): Promise<LoadBalancer> {
    const balancer = await startWithoutHealthChecks(kind, servers, options);
    closing.push(() => balancer.stop());
    return balancer;
  }

  async function startBeforeOne(options?: LoadBalancerOptions) {
    const server = startFakeServer("responds");
    const { port } = await start([server.port, server.port, server.port], options);
    return { server, port };
  }

  test("serves TLS 1.2 and 1.3 with the certificate, and Strict-Transport-Security", async () => {
    const authority = new CertificateAuthority();
    const { port } = await startBeforeOne({ certificate: authority.issue("IP:127.0.0.1") });
    const ca = readFileSync(authority.caFile, "utf8");
    const response = await fetch(`https://127.0.0.1:${port}/v1/pets`, { tls: { ca } });
    expect(response.status).toBe(200);
    expect(response.headers.get("strict-transport-security")).toBe("max-age=31536000");
    const versions = ["TLSv1.1", "TLSv1.2", "TLSv1.3"] as const;
    expect(await Promise.all(versions.map((version) => accepts(port, version)))).toEqual([false, true, true]);
  });

  test("an address that sends too much gets 429 in the API's format; other addresses are served", async () => {
    const { port } = await startBeforeOne({ addressLimit: 1 });
    const send = (from: string) => sendOnce(port, { path: "/v1/pets" }, from);
    // nginx lets a burst of 1,000 pass, so more than that is sent.
    let last = await send("127.0.0.9");
    for (let sent = 1; last.status === 200 && sent < 3_000; sent += 50) {
      const responses = await Promise.all(Array.from({ length: 50 }, () => send("127.0.0.9")));
      last = responses.find(({ status }) => status !== 200) ?? last;
    }
    expect({ status: last.status, body: JSON.parse(last.body) }).toEqual({
      status: 429,
      body: { code: "rate_limited", message: "Too many requests. Retry after 10 seconds.", status: 429 },
    });
    expect(last.headers).toMatchObject({ "content-type": "application/json", "retry-after": "10" });
    expect((await send("127.0.0.10")).status).toBe(200);
  });

  test("connections to the servers are reused, even if clients reuse none", async () => {
    const { server, port } = await startBeforeOne();
    for (let i = 0; i < 100; i++) await sendOnce(port, { path: "/v1/pets" });
    expect(server.received).toHaveLength(100);
    expect(server.connections.size).toBeLessThan(25);
  });

  // HAProxy uses none after /healthz has responded 503.
  if (kind === nginx) {
    test("idle connections to the servers close before a drain delay is over", async () => {
      const { server, port } = await startBeforeOne();
      await Promise.all(Array.from({ length: 20 }, () => sendOnce(port, { path: "/v1/pets" })));
      expect(server.open.size).toBeGreaterThan(0);
      await until(() => server.open.size === 0, 10_000);
    });
  }

  test("without any server: 503 in the API's format, with Retry-After", async () => {
    const { port } = await start([UNUSED_PORT, UNUSED_PORT, UNUSED_PORT]);
    for (const request of [listPets("key"), createPet("key", "Rex"), createPet("key", "Rex", "once")]) {
      const { status, headers, body } = await sendOnce(port, request);
      const error = JSON.parse(body) as Record<string, unknown>;
      expect(Object.keys(error)).toEqual(["code", "message", "status"]);
      expect({ status, ...error }).toMatchObject({ status: 503, code: "unavailable" });
      expect(headers).toMatchObject({ "content-type": "application/json", "retry-after": "1" });
    }
  });

  test("malformed requests get the response that a server gives them", async () => {
    await using service = await startService();
    const serverPort = Number(new URL(service.url).port);
    const { port } = await start([serverPort, serverPort, serverPort]);
    const get = (target: string, fields: string) =>
      `GET ${target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n${fields}\r\n`;
    const key = `Authorization: Bearer ${service.key}\r\nContent-Type: application/json\r\n`;
    const post = `POST /v1/pets HTTP/1.1\r\nHost: x\r\n${key}Transfer-Encoding: chunked\r\nExpect: 100-continue\r\n\r\n`;
    const send = async (to: number, text: string) => {
      const connection = new RawConnection(to);
      await connection.write(text);
      if (text === post) {
        await connection.until((received) => received.endsWith("100 Continue\r\n\r\n"));
        connection.received = "";
        await connection.write("malformed\r\n");
      }
      const [head = "", body = ""] = (await connection.response()).split("\r\n\r\n");
      connection.socket.destroy();
      return [Number(head.split(" ")[1]), /^content-type: (.*)$/im.exec(head)?.[1], body];
    };
    const inBoth: readonly (readonly [text: string, status: number])[] = [
      [get(`/v1/pets?x=${"x".repeat(9_000)}`, ""), 414],
      [get("/v1/pets", `X: ${"x".repeat(17_000)}\r\n`), 431],
      [get("/v1/pets", "X: x\r\n".repeat(200)), 431],
      [post, 400],
    ];
    // HAProxy has a body of its own for these.
    const inNginx: typeof inBoth = [
      ["malformed\r\n\r\n", 400],
      [get("/v1/pets", "a b: c\r\n"), 400],
      ["GET /v1/pets HTTP/1.1\r\n\r\n", 400],
      [get(`/v1/pets?x=${"x".repeat(40_000)}`, ""), 414],
      [get("/v1/pets", `X: ${"x".repeat(40_000)}\r\n`), 431],
      [get("/v1/pets", "Transfer-Encoding: zip\r\n"), 501],
      [get("/v1/pets", "").replace("/1.1", "/3.0"), 505],
      [get("/errors/400", ""), 404],
    ];
    for (const [text, status] of [...inBoth, ...(kind === nginx ? inNginx : [])]) {
      const direct = await send(serverPort, text);
      expect(direct).toEqual([status, "application/json", expect.stringContaining(`"status":${status}}`)]);
      expect(await send(port, text)).toEqual(direct);
    }
  });

  describe("a server that closes the connection instead of a response", () => {
    async function startWithClosing() {
      const [closes, responds] = [startFakeServer("closes"), startFakeServer("responds")];
      const { port } = await start([responds.port, responds.port, closes.port]);
      /** The statuses of requests until that server gets one. */
      const sendUntilClosed = async (request: HttpRequest) => {
        const before = closes.received.length;
        const statuses: number[] = [];
        while (statuses.length < MAX_REQUESTS && closes.received.length === before)
          statuses.push((await sendOnce(port, request)).status);
        expect(closes.received).toHaveLength(before + 1);
        return statuses;
      };
      return sendUntilClosed;
    }

    test("GET, and POST with an Idempotency-Key, are retried at another one", async () => {
      const sendUntilClosed = await startWithClosing();
      for (const request of [listPets("key"), createPet("key", "Rex", "once")])
        expect(new Set(await sendUntilClosed(request))).toEqual(new Set([200]));
    });

    test("POST without an Idempotency-Key, and PATCH, are sent once, and the client gets 503", async () => {
      const sendUntilClosed = await startWithClosing();
      const path = "/v1/store/orders/1";
      const patch = { ...createPet("key", "Rex", "once"), method: "PATCH", path };
      for (const request of [createPet("key", "Rex"), patch])
        expect((await sendUntilClosed(request)).filter((status) => status !== 200)).toEqual([503]);
    });
  });
});
