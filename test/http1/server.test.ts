import { afterEach, describe, expect, jest, test } from "bun:test";
import { connect, type Socket } from "node:net";
import {
  HttpServer,
  type HttpServerOptions,
  type RequestHandler,
  type Response,
} from "../../src/http1/index.ts";
import { respond } from "./test-connection.ts";

const GET = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";

let servers: HttpServer[] = [];
afterEach(async () => {
  const open = servers;
  servers = [];
  await Promise.all(open.map((server) => server.close(0)));
});

const handlerOf = (handle: RequestHandler["handle"]): RequestHandler => ({
  handle,
  handleError: () => respond("failed", 500),
  protocolError: (status) => respond("protocol error", status),
});

function listen(handle: RequestHandler["handle"], options: Partial<HttpServerOptions> = {}): HttpServer {
  const handler = handlerOf(handle);
  const server = new HttpServer({ host: "127.0.0.1", port: 0, handler, onError() {}, ...options });
  servers.push(server);
  return server;
}

interface Client {
  readonly socket: Socket;
  /** Everything that the server sent; resolves when the server has closed the connection. */
  readonly received: Promise<string>;
  until(isEnough: (text: string) => boolean): Promise<string>;
}

function connectTo({ port }: HttpServer): Client {
  const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true });
  let text = "";
  let onText = () => {};
  socket.on("data", (bytes) => ((text += bytes.toString("latin1")), onText()));
  const received = new Promise<string>((resolve, reject) => {
    socket.on("end", () => (socket.end(), resolve(text)));
    socket.on("error", reject);
  });
  received.catch(() => {});
  const until = async (isEnough: (text: string) => boolean) => {
    while (!isEnough(text)) await new Promise<void>((resolve) => (onText = resolve));
    return text;
  };
  return { socket, received, until };
}

const countResponses = (text: string) => text.match(/HTTP\/1\.1 200/g)?.length ?? 0;

describe("a server", () => {
  test("responds to thousands of pipelined requests, and to other clients in between", async () => {
    const server = listen(({ path }) => respond(path));
    const [many, one] = [connectTo(server), connectTo(server)];
    many.socket.write(GET.repeat(5_000));
    one.socket.write(GET);
    await one.until((text) => countResponses(text) === 1);
    expect(countResponses(await many.until(() => true))).toBeLessThan(5_000);
    expect(countResponses(await many.until((text) => countResponses(text) === 5_000))).toBe(5_000);
    many.socket.destroy();
    one.socket.destroy();
  });

  test("sends every byte of a large response to a client that reads slowly", async () => {
    const body = "猫é".repeat(2_000_000);
    const { socket, received } = connectTo(listen(() => respond(body)));
    socket.pause();
    socket.write(GET.replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n"));
    await Bun.sleep(50);
    socket.resume();
    const text = await received;
    expect(Buffer.from(text.slice(text.indexOf("\r\n\r\n") + 4), "latin1").toString() === body).toBe(true);
  });

  test("responds to a client that has closed its sending side", async () => {
    const { socket, received } = connectTo(listen(async () => (await Bun.sleep(10), respond("late"))));
    socket.end(GET);
    expect(await received).toEndWith("late");
  });

  test("lets a client read a response that comes in the middle of its large request", async () => {
    const { socket, received } = connectTo(listen(() => respond("no", 413)));
    socket.write("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5000000\r\n\r\n");
    socket.write("x".repeat(5_000_000));
    expect(await received).toEndWith("no");
  });

  test("lets a client that uploads slowly, and reads only then, read its 413", async () => {
    const { socket, received } = connectTo(listen(() => respond("no", 413), { secondMs: 10 }));
    socket.pause();
    socket.write("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5000000\r\n\r\n");
    // Eight times as long as the server waits for a client that sends nothing.
    for (let i = 0; i < 32; i++) {
      await Bun.sleep(5);
      socket.write("x".repeat(1_000));
    }
    socket.resume();
    expect(await received).toEndWith("no");
  });

  test("uses a new handler from the next request on", async () => {
    const server = listen(() => respond("before"));
    const { socket, until } = connectTo(server);
    socket.write(GET);
    await until((text) => text.endsWith("before"));
    server.handler = handlerOf(() => respond("after"));
    socket.write(GET);
    expect(await until((text) => text.endsWith("after"))).toContain("before");
    socket.destroy();
  });

  test("passes the client's address to the handler", async () => {
    const { socket, until } = connectTo(listen(({ remoteAddress }) => respond(remoteAddress)));
    socket.write(GET);
    expect(await until((text) => text.includes("\r\n\r\n"))).toEndWith("127.0.0.1");
    socket.destroy();
  });

  test("closes a connection in which an error occurs, and reports the error", async () => {
    const errors: unknown[] = [];
    const response = { ...respond(""), body: 5 as never };
    const { socket, received } = connectTo(
      listen(() => response, { onError: (error) => errors.push(error) }),
    );
    socket.write(GET);
    await received.catch(() => {});
    expect(errors).toEqual([expect.any(TypeError)]);
  });
});

describe("time", () => {
  afterEach(() => void jest.useRealTimers());

  test("408: a request that has begun has not arrived within 30 seconds", async () => {
    jest.useFakeTimers();
    const server = listen(() => respond(""));
    const { socket, received, until } = connectTo(server);
    socket.write(`${GET}GET / HT`);
    await until((text) => countResponses(text) === 1);
    jest.advanceTimersByTime(30_000);
    socket.write("TP/1.1\r\nHost: x\r\n\r\nGET / HT");
    await until((text) => countResponses(text) === 2);
    jest.advanceTimersByTime(31_000);
    expect(await received).toMatch(/HTTP\/1\.1 200 [^]*HTTP\/1\.1 200 [^]*HTTP\/1\.1 408 /);
  });

  test("the Date header follows the clock, second by second", async () => {
    jest.useFakeTimers({ now: Date.UTC(2026, 10, 15, 12) });
    const server = listen(() => respond(""));
    const { socket, until } = connectTo(server);
    socket.write(GET);
    await until((text) => text.includes("Date: Sun, 15 Nov 2026 12:00:00 GMT\r\n"));
    jest.advanceTimersByTime(1_000);
    socket.write(GET);
    await until((text) => text.includes("Date: Sun, 15 Nov 2026 12:00:01 GMT\r\n"));
    socket.destroy();
  });

  test("the Date header is never more than a second behind the clock", async () => {
    jest.useFakeTimers({ now: Date.UTC(2026, 10, 15, 12, 0, 0, 900) });
    const server = listen(() => respond(""));
    const { socket, until } = connectTo(server);
    jest.advanceTimersByTime(100);
    socket.write(GET);
    expect(await until((text) => text.includes("\r\n\r\n"))).toContain(
      "Date: Sun, 15 Nov 2026 12:00:01 GMT\r\n",
    );
    socket.destroy();
  });
});

describe("a graceful shutdown", () => {
  afterEach(() => void jest.useRealTimers());

  const neverRespond = () => new Promise<Response>(() => {});

  test("terminates connections that are still open after 8 seconds", async () => {
    jest.useFakeTimers();
    const late = Promise.withResolvers<Response>();
    const bothStarted = Promise.withResolvers<void>();
    let started = 0;
    const server = listen(({ path }) => {
      if (++started === 2) bothStarted.resolve();
      return path === "/late" ? late.promise : neverRespond();
    });
    const [inTime, tooLate] = [connectTo(server), connectTo(server)];
    inTime.socket.write(GET.replace("/", "/late"));
    tooLate.socket.write(GET);
    await bothStarted.promise;
    const closed = server.close(0);
    jest.advanceTimersByTime(7_999);
    late.resolve(respond("in time"));
    expect(await inTime.received).toEndWith("in time");
    jest.advanceTimersByTime(1);
    await closed;
    await expect(tooLate.received).rejects.toMatchObject({ code: "ECONNRESET" });
    servers = [];
  });

  test("terminates connections that are open when its time is up, counted from the end of the delay", async () => {
    for (const delayMs of [0, 60]) {
      const server = listen(neverRespond, { closeTimeoutMs: 40 });
      const { socket, received } = connectTo(server);
      socket.write(GET);
      await Bun.sleep(5);
      const startedAt = performance.now();
      await server.close(delayMs);
      expect(performance.now() - startedAt).toBeWithin(delayMs + 35, 1_000);
      expect((await received.catch((error: NodeJS.ErrnoException) => error.code)) ?? "").toBe("ECONNRESET");
    }
    servers = [];
  });

  test("keeps idle connections open until the delay is over", async () => {
    const server = listen(() => respond("still open"), { secondMs: 20 });
    const { socket, received } = connectTo(server);
    await Bun.sleep(10);
    const closed = server.close(60);
    await Bun.sleep(30);
    socket.write(GET);
    expect(await received).toEndWith("still open");
    await closed;
    servers = [];
  });

  test("closes idle connections after the delay, and waits for pending responses", async () => {
    const started = Promise.withResolvers<void>();
    const finish = Promise.withResolvers<void>();
    const server = listen(async () => {
      started.resolve();
      await finish.promise;
      return respond("finished");
    });
    const [idle, busy] = [connectTo(server), connectTo(server)];
    busy.socket.write(GET);
    await started.promise;
    const closed = server.close(0);
    expect(await idle.received).toBe("");
    finish.resolve();
    const text = await busy.received;
    expect(text).toContain("Connection: close\r\n");
    expect(text).toEndWith("finished");
    await closed;
    servers = [];
  });

  test("waits at most a second for the rest of a request head", async () => {
    const server = listen(() => respond("responded"), { secondMs: 50 });
    const [partial, completed] = [connectTo(server), connectTo(server)];
    for (const { socket } of [partial, completed]) socket.write(`${GET}GET / HT`);
    for (const { until } of [partial, completed]) await until((text) => text.endsWith("responded"));
    const startedAt = performance.now();
    const closed = server.close(0);
    completed.socket.write("TP/1.1\r\nHost: x\r\n\r\n");
    expect(countResponses(await completed.received)).toBe(2);
    expect(countResponses(await partial.received)).toBe(1);
    await closed;
    expect(performance.now() - startedAt).toBeLessThan(1_000);
    servers = [];
  });

  test("closes a connection that is slowed after 401 or 429, without the rest of its responses", async () => {
    const server = listen(() => respond("", 401), { closeTimeoutMs: 60_000 });
    // The next turn of a slowed connection is in ten seconds.
    for (let i = 0; i < 20_000; i++) server.turns.queueSlowed({ takeTurn() {} });
    const { socket, until, received } = connectTo(server);
    const countRejections = (text: string) => text.match(/HTTP\/1\.1 401/g)?.length ?? 0;
    socket.write(GET.repeat(30));
    await until((text) => countRejections(text) === 21);
    await server.close(0);
    expect(countRejections(await received)).toBe(21);
    servers = [];
  });

  test("closes connections that become idle during it", async () => {
    const server = listen(() => respond("x".repeat(8_000_000)));
    const { socket, received, until } = connectTo(server);
    socket.write(GET);
    await until((text) => text.length > 0);
    socket.pause();
    const startedAt = performance.now();
    const closed = server.close(0);
    socket.resume();
    expect((await received).length).toBeGreaterThan(8_000_000);
    await closed;
    expect(performance.now() - startedAt).toBeLessThan(4_000);
    servers = [];
  });

  test("responds during the delay with Connection: close", async () => {
    const server = listen(() => respond("still open"));
    const { socket, until, received } = connectTo(server);
    socket.write(GET);
    await until((text) => text.endsWith("still open"));
    const closed = server.close(50);
    socket.write(GET);
    expect(await received).toMatch(/Connection: close\r\n[^]*still open$/);
    await closed;
    servers = [];
  });
});
