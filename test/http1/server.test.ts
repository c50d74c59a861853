import { afterEach, describe, expect, jest, spyOn, test } from "bun:test";
import type { Socket } from "node:net";
import { join } from "node:path";
import { Worker } from "node:worker_threads";
import {
  HttpServer,
  type HttpServerOptions,
  type LimitEvent,
  RequestAborted,
  type RequestHandler,
  type Response,
} from "../../src/http1/index.ts";
import { slowRejectedClients } from "../../src/http1/slow-rejected-clients.ts";
import { RawConnection } from "../../trials/harness/http-connection.ts";
import { iterateUntil, nextIteration, respond } from "./test-connection.ts";

const GET = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";

const servers: HttpServer[] = [];
const sockets: Socket[] = [];
afterEach(async () => {
  jest.useRealTimers();
  for (const socket of sockets.splice(0)) socket.destroy();
  await Promise.all(servers.splice(0).map((server) => server.close(0)));
});

const handlerOf = (handle: RequestHandler["handle"]): RequestHandler => ({
  handle,
  handleError: () => respond("failed", 500),
  protocolError: (status) => respond("protocol error", status),
});

function listen(handle: RequestHandler["handle"], options: Partial<HttpServerOptions> = {}): HttpServer {
  const createHandler = () => handlerOf(handle);
  const server = new HttpServer({ host: "127.0.0.1", port: 0, createHandler, onError() {}, ...options });
  servers.push(server);
  return server;
}

function connectTo({ port }: HttpServer, from?: string): RawConnection {
  const connection = new RawConnection(port, from);
  sockets.push(connection.socket);
  return connection;
}

const countResponses = (text: string, status = 200) => text.split(`HTTP/1.1 ${status} `).length - 1;

describe("a server", () => {
  test("responds to thousands of pipelined requests, and to other clients in between", async () => {
    const handled: string[] = [];
    const server = listen(({ path }) => (handled.push(path), respond(path)));
    const [many, one] = [connectTo(server), connectTo(server)];
    for (const { socket } of [many, one]) socket.write(GET);
    for (const client of [many, one]) await client.until((text) => countResponses(text) === 1);
    many.socket.write(GET.repeat(5_000));
    one.socket.write(GET.replace("/", "/one"));
    await many.until((text) => countResponses(text) === 5_001);
    expect(handled.indexOf("/one")).toBeWithin(0, 4_000);
  });

  test("sends every byte of a large response to a client that reads late", async () => {
    const body = "猫é".repeat(2_000_000);
    const server = listen(() => respond(body));
    const { socket, rest } = connectTo(server);
    socket.pause();
    socket.write(GET.replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n"));
    await iterateUntil(() => server.statistics.bytesSent > 0);
    socket.resume();
    const text = await rest();
    expect(Buffer.from(text.slice(text.indexOf("\r\n\r\n") + 4), "latin1").toString() === body).toBe(true);
  });

  test("lets a client that uploads slowly, and reads only then, read its 413", async () => {
    jest.useFakeTimers();
    const server = listen(() => respond("no", 413));
    const { socket, rest } = connectTo(server);
    socket.pause();
    socket.write("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5000000\r\n\r\n");
    // Eight times as long as the server waits for a client that sends nothing.
    for (let second = 0; second < 16; second++) {
      const { bytesReceived } = server.statistics;
      socket.write("x".repeat(1_000));
      await iterateUntil(() => server.statistics.bytesReceived > bytesReceived);
      jest.advanceTimersByTime(1_000);
    }
    socket.resume();
    expect(await rest()).toEndWith("no");
  });

  test("makes its handler when its port is known, before the first request", async () => {
    const server = new HttpServer({
      host: "127.0.0.1",
      port: 0,
      createHandler: ({ port }) => handlerOf(() => respond(`on ${port}`)),
      onError: () => {},
    });
    const { socket, until } = connectTo(server);
    socket.write(GET);
    await until((text) => text.endsWith(`on ${server.port}`));
    socket.destroy();
    await Promise.all([server.close(0), server.close(10_000)]);
  });

  test("tells a handler that its client has disconnected", async () => {
    const { promise, resolve } = Promise.withResolvers<unknown>();
    const server = listen(async (request) => {
      await Promise.resolve(request.body(10)).catch(resolve);
      return respond("");
    });
    const { socket } = connectTo(server);
    socket.write("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\na");
    await iterateUntil(() => server.statistics.bytesReceived > 0);
    socket.resetAndDestroy();
    expect(await promise).toBeInstanceOf(RequestAborted);
  });

  test("closes a connection in which an error occurs, and reports the error", async () => {
    const errors: unknown[] = [];
    const response = { ...respond(""), body: 5 as never };
    const client = connectTo(listen(() => response, { onError: (error) => errors.push(error) }));
    client.socket.write(GET);
    await client.rest();
    expect(errors).toEqual([expect.any(TypeError)]);
    expect(client.error).toMatchObject({ code: "ECONNRESET" });
  });

  test("closes connections above its limits, counts them, and reports the limits", async () => {
    jest.useFakeTimers();
    const events: LimitEvent[] = [];
    const limits = { maxConnections: 2, maxConnectionsPerPeer: 1 };
    const server = listen(() => respond("ok"), { ...limits, onLimit: (event) => events.push(event) });
    const open = async (address: string) => {
      const client = connectTo(server, address);
      client.socket.write(GET);
      bytesSent += (await client.until((text) => text.endsWith("ok"))).length;
      return client;
    };
    let bytesSent = 0;
    const first = await open("127.0.0.2");
    await connectTo(server, "127.0.0.2").rest();
    await open("127.0.0.3");
    await open("127.0.0.4");
    expect(await first.rest()).toEndWith("ok");
    await iterateUntil(() => server.statistics.connections === 2);
    const traffic = { bytesReceived: 3 * GET.length, bytesSent };
    const counts = { connections: 2, accepted: 3, rejected: 1, evicted: 1, queueLength: 0 };
    expect(server.statistics).toEqual({ ...counts, ...traffic });
    jest.advanceTimersByTime(10_000);
    expect(events.map(({ limit, isOver, peer }) => [limit, isOver, peer])).toEqual([
      ["peer", false, "127.0.0.2"],
      ["all", false, "127.0.0.4"],
      ["all", true, "127.0.0.4"],
      ["peer", true, "127.0.0.2"],
    ]);
  });

  test.each([
    ["the connection that was opened first", 0, {}],
    ["one that is not authenticated, if such bodies have less time", 1, { unauthenticatedBodySeconds: 5 }],
  ])("makes room by closing %s", async (_, closed, options) => {
    const handle: RequestHandler["handle"] = (request) => {
      if (request.path === "/known") request.markAuthenticated();
      return respond("ok");
    };
    const server = listen(handle, { maxConnections: 2, ...options });
    const clients = [connectTo(server), connectTo(server)];
    for (const [i, { socket, until }] of clients.entries()) {
      socket.write(GET.replace("/", i === 0 ? "/known" : "/"));
      await until((text) => text.endsWith("ok"));
    }
    connectTo(server);
    expect(await clients[closed]?.rest()).toEndWith("ok");
    expect(server.statistics).toMatchObject({ accepted: 3, evicted: 1, rejected: 0 });
    expect(server).toMatchObject(options);
  });
});

describe("a connection above the maximum of its peer", () => {
  const createHandler = () => ({
    ...handlerOf(() => respond("ok")),
    tooManyConnections: () => respond("too many", 503),
  });

  /** A server with the connection that one peer may have. */
  async function fullServer(options: Partial<HttpServerOptions> = {}): Promise<HttpServer> {
    const server = listen(() => respond(""), { createHandler, maxConnectionsPerPeer: 1, ...options });
    const first = connectTo(server);
    first.socket.write(GET);
    await first.until((text) => text.endsWith("ok"));
    return server;
  }

  /** Opens a connection whose client does not close its side after the server has. */
  function openWithoutEnd(server: HttpServer): Socket {
    return connectTo(server).socket.removeAllListeners("end");
  }

  test("gets the response of the handler and is closed, whether it has sent its request or sends it later", async () => {
    const server = await fullServer();
    const [early, late] = [connectTo(server), connectTo(server)];
    early.socket.write(GET.repeat(100));
    await late.until((text) => text.endsWith("too many"));
    late.socket.write(GET);
    for (const { rest } of [early, late])
      expect(await rest()).toMatch(/^HTTP\/1\.1 503 [^]*\r\nConnection: close\r\n[^]*\r\n\r\ntoo many$/);
    expect(server.statistics).toMatchObject({ connections: 1, accepted: 1, rejected: 2 });
  });

  test("is reset if 64 of them are not closed yet, until their clients have had a few seconds", async () => {
    jest.useFakeTimers();
    const server = await fullServer();
    for (let i = 0; i < 64; i++) openWithoutEnd(server);
    await iterateUntil(() => server.statistics.rejected === 64);
    expect(await connectTo(server).rest()).toBe("");
    for (let second = 0; second < 5; second++) {
      jest.advanceTimersByTime(1_000);
      await nextIteration();
    }
    expect(await connectTo(server).rest()).toEndWith("too many");
    expect(server.statistics).toMatchObject({ connections: 1, accepted: 1, rejected: 66 });
  });

  test("is reset if 100 had a response in this second", async () => {
    jest.useFakeTimers();
    const server = await fullServer();
    for (let i = 0; i < 100; i++) expect(await connectTo(server).rest()).toEndWith("too many");
    expect(await connectTo(server).rest()).toBe("");
    jest.advanceTimersByTime(1_000);
    expect(await connectTo(server).rest()).toEndWith("too many");
  });

  test("makes way for a connection of another peer", async () => {
    const server = await fullServer({ maxConnections: 2 });
    const { promise: isClosed, resolve } = Promise.withResolvers<void>();
    openWithoutEnd(server).on("close", resolve);
    await iterateUntil(() => server.statistics.rejected === 1);
    const other = connectTo(server, "127.0.0.2");
    other.socket.write(GET);
    await other.until((text) => text.endsWith("ok"));
    await isClosed;
  });

  test("is closed when the server closes, although its client does not close its side", async () => {
    const server = await fullServer();
    const { promise: isClosed, resolve } = Promise.withResolvers<void>();
    openWithoutEnd(server).on("close", resolve);
    await iterateUntil(() => server.statistics.rejected === 1);
    await server.close(0);
    await isClosed;
  });
});

test("the Date header follows the clock, and is made once a second", async () => {
  jest.useFakeTimers({ now: Date.UTC(2026, 10, 15, 12, 0, 0, 900) });
  using formatted = spyOn(Date.prototype, "toUTCString");
  const { socket, until } = connectTo(listen(() => respond("")));
  for (const second of ["00", "01"]) {
    socket.write(GET.repeat(5));
    await until((text) => text.split(`Date: Sun, 15 Nov 2026 12:00:${second} GMT\r\n`).length === 6);
    jest.advanceTimersByTime(100);
  }
  expect(formatted).toHaveBeenCalledTimes(2);
});

describe("a graceful shutdown", () => {
  /** Step by step: a wait begins when the one before it is over. */
  async function advance(...steps: readonly number[]): Promise<void> {
    for (const ms of steps) {
      jest.advanceTimersByTime(ms);
      await nextIteration();
    }
  }

  test("terminates connections that are still open 8 seconds after the delay", async () => {
    jest.useFakeTimers();
    const late = Promise.withResolvers<Response>();
    let started = 0;
    const neverRespond = () => new Promise<Response>(() => {});
    const server = listen(({ path }) => (started++, path === "/late" ? late.promise : neverRespond()));
    const [inTime, tooLate] = [connectTo(server), connectTo(server)];
    inTime.socket.write(GET.replace("/", "/late"));
    tooLate.socket.write(GET);
    await iterateUntil(() => started === 2);
    const closed = server.close(5_000);
    await advance(4_950, 8_049);
    late.resolve(respond("in time"));
    expect(await inTime.rest()).toEndWith("in time");
    jest.advanceTimersByTime(1);
    await closed;
    expect(await tooLate.rest()).toBe("");
    expect(tooLate.error).toMatchObject({ code: "ECONNRESET" });
  });

  test("responds until the delay is over, with Connection: close, and keeps idle connections open", async () => {
    jest.useFakeTimers();
    const server = listen(() => respond("still open"));
    const { socket, rest } = connectTo(server);
    await iterateUntil(() => server.statistics.connections === 1);
    const closed = server.close(5_000);
    await advance(4_950, 49);
    socket.write(GET);
    expect(await rest()).toMatch(/Connection: close\r\n[^]*still open$/);
    jest.advanceTimersByTime(1);
    await closed;
  });

  test("a connection that was opened in the delay has a second after it for its request", async () => {
    jest.useFakeTimers();
    const server = listen(() => respond("responded"));
    const [late, silent, used] = [connectTo(server), connectTo(server), connectTo(server)];
    used.socket.write(GET);
    await used.until((text) => text.endsWith("responded"));
    await iterateUntil(() => server.statistics.connections === 3);
    const closed = server.close(5_000);
    await advance(4_950, 50, 999);
    expect(countResponses(await used.rest())).toBe(1);
    late.socket.write(GET);
    expect(await late.rest()).toMatch(/Connection: close\r\n[^]*responded$/);
    jest.advanceTimersByTime(1);
    expect(await silent.rest()).toBe("");
    await closed;
  });

  test("a client that connects at the end of the delay gets its response", async () => {
    const server = listen(() => respond("responded"));
    const isSent = new Int32Array(new SharedArrayBuffer(4));
    const workerData = { port: server.port, isSent };
    const client = new Worker(join(import.meta.dir, "connecting-client.ts"), { workerData });
    const received = new Promise((resolve) => client.once("message", resolve));
    // This thread accepts nothing until the request is sent and the delay is over.
    Atomics.wait(isSent, 0, 0, 30_000);
    const closed = server.close(100);
    Bun.sleepSync(150);
    expect(await received).toEndWith("responded");
    await closed;
    await client.terminate();
  });

  test("closes idle connections after the delay, and waits for pending responses", async () => {
    const finish = Promise.withResolvers<Response>();
    let isStarted = false;
    const server = listen(() => ((isStarted = true), finish.promise));
    const [idle, busy] = [connectTo(server), connectTo(server)];
    busy.socket.write(GET);
    await iterateUntil(() => isStarted && server.statistics.connections === 2);
    const closed = server.close(0);
    expect(await idle.rest()).toBe("");
    finish.resolve(respond("finished"));
    expect(await busy.rest()).toMatch(/Connection: close\r\n[^]*finished$/);
    await closed;
  });

  test("waits at most a second for the rest of a request head", async () => {
    jest.useFakeTimers();
    const server = listen(() => respond("responded"));
    const [partial, completed] = [connectTo(server), connectTo(server)];
    for (const { socket } of [partial, completed]) socket.write(`${GET}GET / HT`);
    for (const { until } of [partial, completed]) await until((text) => text.endsWith("responded"));
    const closed = server.close(0);
    jest.advanceTimersByTime(999);
    completed.socket.write("TP/1.1\r\nHost: x\r\n\r\n");
    expect(countResponses(await completed.rest())).toBe(2);
    jest.advanceTimersByTime(1);
    expect(countResponses(await partial.rest())).toBe(1);
    await closed;
  });

  test("closes a connection that is slowed after 401 or 429, without the rest of its responses", async () => {
    jest.useFakeTimers();
    const server = listen(() => respond("", 401), { createPacer: slowRejectedClients });
    const { socket, until, rest } = connectTo(server);
    socket.write(GET.repeat(30));
    await until((text) => countResponses(text, 401) === 21);
    const closed = server.close();
    jest.advanceTimersByTime(0);
    await closed;
    expect(countResponses(await rest(), 401)).toBe(21);
  });

  test("waits for a pending response on a connection that was slowed before", async () => {
    jest.useFakeTimers();
    const finish = Promise.withResolvers<Response>();
    let started = 0;
    const handle = () => (++started <= 21 ? respond("", 401) : finish.promise);
    const server = listen(handle, { createPacer: slowRejectedClients });
    const { socket, until: received, rest } = connectTo(server);
    socket.write(GET.repeat(21));
    await received((text) => countResponses(text, 401) === 21);
    jest.advanceTimersByTime(10);
    socket.write(GET);
    await iterateUntil(() => started === 22);
    const closed = server.close(0);
    jest.advanceTimersByTime(0);
    finish.resolve(respond("finished"));
    expect(await rest()).toMatch(/finished$/);
    await closed;
  });

  test("closes connections that become idle during it", async () => {
    jest.useFakeTimers();
    const server = listen(() => respond("x".repeat(8_000_000)));
    const { socket, rest, until } = connectTo(server);
    socket.write(GET);
    await until((text) => text.length > 0);
    socket.pause();
    const closed = server.close(0);
    await advance(0, 1_000);
    socket.resume();
    await until((text) => text.length > 8_000_000);
    jest.advanceTimersByTime(1_000);
    await rest();
    await closed;
  });
});

test("a load balancer's connection is not slowed, and no connection is unless the server is told to", async () => {
  const peerOf = (id: string) => ({ id, clientOf: () => id });
  for (const options of [{ createPacer: slowRejectedClients, peerOf }, {}]) {
    const { socket, until } = connectTo(listen(() => respond("", 401), options));
    socket.write(GET.repeat(1_100));
    expect(await until((text) => countResponses(text, 401) === 1_100)).not.toContain("Connection: close");
  }
});
