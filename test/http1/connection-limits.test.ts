import { executable, SS } from "../../harness/programs.ts";
import { afterEach, describe, expect, test } from "bun:test";
import { connect, type Socket } from "node:net";
import { maxConnectionsWithin } from "../../src/http1/connection-limits.ts";
import { HttpServer, type HttpServerOptions, type LimitEvent } from "../../src/http1/index.ts";
import { respond } from "./test-connection.ts";

const GET = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
const LOAD_BALANCER = "127.0.0.9";

const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close();
});

function listen(options: Partial<HttpServerOptions>) {
  const events: LimitEvent[] = [];
  const server = new HttpServer({
    host: "127.0.0.1",
    port: 0,
    closeTimeoutMs: 50,
    handler: {
      handle: async (request) => {
        await request.body(100);
        return handlers[request.path]?.() ?? respond("ok");
      },
      handleError: () => respond("", 500),
      protocolError: (status) => respond("", status),
    },
    onError() {},
    onLimit: (event) => events.push(event),
    peerOf: (address) => ({ id: address, isTrusted: address === LOAD_BALANCER }),
    ...options,
  });
  closing.push(() => server.close(0));
  return { server, events };
}

const handlers: Record<string, () => Promise<never>> = { "/slow": () => new Promise(() => {}) };

class Client {
  text = "";
  isClosed = false;
  #onChange = () => {};

  private constructor(readonly socket: Socket) {
    socket.on("data", (bytes) => ((this.text += bytes), this.#onChange()));
    socket.on("error", () => {});
    socket.on("close", () => ((this.isClosed = true), this.#onChange()));
    closing.push(() => socket.destroy());
  }

  /** Resolves when the server has had the time to accept the connection. */
  static async open({ port }: HttpServer, localAddress = "127.0.0.1"): Promise<Client> {
    const client = new Client(connect({ host: "127.0.0.1", port, localAddress }));
    await new Promise<void>((resolve) => client.socket.on("connect", resolve).on("close", () => resolve()));
    await Bun.sleep(5);
    return client;
  }

  /** Undefined if the connection is closed instead. */
  async get(path = "/"): Promise<string | undefined> {
    this.text = "";
    this.socket.write(GET.replace("/", path));
    while (this.text === "" && !this.isClosed)
      await new Promise<void>((resolve) => (this.#onChange = resolve));
    return this.text.split("\r\n")[0] || undefined;
  }

  send(text: string): this {
    this.socket.write(text);
    return this;
  }
}

const OK = "HTTP/1.1 200 OK";

describe("the maximum of connections", () => {
  test("is 64 below the limit of open files, and 20,000 at most", () => {
    expect(maxConnectionsWithin(undefined, 256)).toBe(192);
    expect(maxConnectionsWithin(1_000, 256)).toBe(192);
    expect(maxConnectionsWithin(100, 256)).toBe(100);
    expect(maxConnectionsWithin(undefined, 1_000_000)).toBe(20_000);
    expect(maxConnectionsWithin(undefined, 10)).toBe(1);
  });

  test("makes room for a new connection by closing the oldest that has sent nothing", async () => {
    const { server } = listen({ maxConnections: 3 });
    const kept = await Client.open(server);
    expect(await kept.get()).toBe(OK);
    const [older, newer] = [await Client.open(server), await Client.open(server)];
    const added = await Client.open(server);
    expect(await added.get()).toBe(OK);
    expect([older.isClosed, newer.isClosed]).toEqual([true, false]);
    expect(await kept.get()).toBe(OK);
    expect(server.statistics).toMatchObject({ connections: 3, accepted: 4, evicted: 1, rejected: 0 });
  });

  test("closes a connection with an unfinished head before one that is idle between requests", async () => {
    const { server } = listen({ maxConnections: 2 });
    const kept = await Client.open(server);
    expect(await kept.get()).toBe(OK);
    const unfinished = (await Client.open(server)).send("GET / HT");
    await Bun.sleep(10);
    expect(await (await Client.open(server)).get()).toBe(OK);
    expect([unfinished.isClosed, kept.isClosed]).toEqual([true, false]);
  });

  test("closes connections of the address that has the most", async () => {
    const { server } = listen({ maxConnections: 3 });
    const single = await Client.open(server, "127.0.0.2");
    const [first, second] = [await Client.open(server, "127.0.0.3"), await Client.open(server, "127.0.0.3")];
    expect(await (await Client.open(server, "127.0.0.4")).get()).toBe(OK);
    expect([single.isClosed, first.isClosed, second.isClosed]).toEqual([false, true, false]);
  });

  test("closes the connection that was idle longest if every one has had a request", async () => {
    const { server } = listen({ maxConnections: 2, secondMs: 5 });
    const [first, second] = [await Client.open(server), await Client.open(server)];
    await second.get();
    await Bun.sleep(20);
    await first.get();
    expect(await (await Client.open(server)).get()).toBe(OK);
    expect([first.isClosed, second.isClosed]).toEqual([false, true]);
  });

  test("closes a connection whose client has not sent the rest of its body for more than two seconds", async () => {
    const { server } = listen({ maxConnections: 3, secondMs: 200 });
    const unfinished = "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{";
    const working = (await Client.open(server, "127.0.0.2")).send(GET.replace("/", "/slow"));
    const slow = [(await Client.open(server)).send(unfinished), (await Client.open(server)).send(unfinished)];
    await Bun.sleep(20);
    expect(await (await Client.open(server)).get()).toBeUndefined();
    await Bun.sleep(900);
    expect(await (await Client.open(server)).get()).toBe(OK);
    expect(slow.filter(({ isClosed }) => isClosed)).toHaveLength(1);
    expect(working.isClosed).toBeFalse();
  });

  test("closes one of an address with more connections at once, also after a search for that address", async () => {
    const { server } = listen({ maxConnections: 2, secondMs: 60_000 });
    const unfinished = "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{";
    const slow = [(await Client.open(server)).send(unfinished), (await Client.open(server)).send(unfinished)];
    await Bun.sleep(20);
    expect(await (await Client.open(server)).get()).toBeUndefined();
    expect(slow.filter(({ isClosed }) => isClosed)).toHaveLength(0);
    expect(await (await Client.open(server, "127.0.0.3")).get()).toBe(OK);
    expect(slow.filter(({ isClosed }) => isClosed)).toHaveLength(1);
  });

  test("closes new connections while every connection is busy, except a load balancer's", async () => {
    const { server } = listen({ maxConnections: 2 });
    for (const busy of [await Client.open(server), await Client.open(server)])
      busy.send(GET.replace("/", "/slow"));
    await Bun.sleep(20);
    expect(await (await Client.open(server)).get()).toBeUndefined();
    expect(await (await Client.open(server, LOAD_BALANCER)).get()).toBe(OK);
  });

  test("reserves 16 connections for load balancers", async () => {
    const { server } = listen({ maxConnections: 1 });
    (await Client.open(server)).send(GET.replace("/", "/slow"));
    await Bun.sleep(20);
    for (let i = 0; i < 16; i++) {
      const client = (await Client.open(server, LOAD_BALANCER)).send(GET.replace("/", "/slow"));
      expect(client.isClosed).toBe(false);
    }
    expect(await (await Client.open(server, LOAD_BALANCER)).get()).toBeUndefined();
  });

  test("is reported once when it is reached, and once when it has not been reached for 10 seconds", async () => {
    const { server, events } = listen({ maxConnections: 1, secondMs: 20 });
    for (let i = 0; i < 4; i++) await Client.open(server);
    expect(events).toMatchObject([{ limit: "all", isOver: false, peer: "127.0.0.1" }]);
    while (events.length < 2) await Bun.sleep(10);
    expect(events[1]).toMatchObject({ limit: "all", isOver: true, evicted: 3, rejected: 0 });
  });
});

describe("the maximum of connections of an address", () => {
  test("closes further connections of that address, and no others", async () => {
    const { server, events } = listen({ maxConnectionsPerPeer: 2 });
    const [first] = [await Client.open(server), await Client.open(server)];
    expect(await (await Client.open(server)).get()).toBeUndefined();
    expect(await (await Client.open(server, "127.0.0.2")).get()).toBe(OK);
    expect(events).toMatchObject([{ limit: "peer", isOver: false, peer: "127.0.0.1", rejected: 1 }]);
    expect(server.statistics).toMatchObject({ accepted: 3, rejected: 1 });
    first?.socket.destroy();
    await Bun.sleep(20);
    expect(await (await Client.open(server)).get()).toBe(OK);
  });

  test("does not apply to load balancers", async () => {
    const { server } = listen({ maxConnectionsPerPeer: 1 });
    await Client.open(server, LOAD_BALANCER);
    expect(await (await Client.open(server, LOAD_BALANCER)).get()).toBe(OK);
  });
});

test("the listen backlog is the system's maximum", async () => {
  const { server } = listen({});
  const [systemMaximum, sockets] = await Promise.all([
    Bun.file("/proc/sys/net/core/somaxconn").text(),
    Bun.$`${executable(SS)} -Hltn sport = :${server.port}`.text(),
  ]);
  expect(sockets.split(/\s+/)[2]).toBe(systemMaximum.trim());
});
