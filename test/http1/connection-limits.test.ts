import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import { ConnectionLimits, maxConnectionsWithin, maxDescriptors } from "../../src/http1/connection-limits.ts";
import type { LimitEvent } from "../../src/http1/index.ts";
import { temporaryDirectory } from "../../trials/harness/cleanup.ts";
import { get, nextIteration, post, respond, TestConnection } from "./test-connection.ts";

const LOAD_BALANCER = "192.0.2.1";
const UNFINISHED_BODY = post("/", "abc").slice(0, -1);

/** The limits of a server whose clients and whose seconds the test makes up. Requests of `/slow` get no response. */
class LimitedServer {
  readonly limits: ConnectionLimits;
  readonly events: LimitEvent[] = [];
  readonly #clients = new Set<TestConnection>();
  #uptimeSeconds = 0;

  constructor(limits: Partial<ConstructorParameters<typeof ConnectionLimits>[0]>) {
    const onLimit = (event: LimitEvent) => void this.events.push(event);
    const defaults = { maxConnections: 1_000, maxConnectionsPerPeer: 0, maxHandshakesPerSecond: 0 };
    this.limits = new ConnectionLimits({ ...defaults, ...limits, onLimit });
  }

  /** Undefined if the connection is closed at once. */
  open(address = "203.0.113.1"): TestConnection | undefined {
    const peer = { id: address, ...(address === LOAD_BALANCER && { clientOf: () => "" }) };
    const isAccepted = this.limits.accepts(peer);
    this.#forgetClosed();
    if (!isAccepted) return undefined;
    const client = new TestConnection(
      async (request) => {
        if (request.headers.get("authorization") !== null) request.markAuthenticated();
        if (request.path === "/slow") return new Promise(() => {});
        await request.body(100);
        return respond("ok");
      },
      { peer, uptimeSeconds: this.#uptimeSeconds },
    );
    this.#clients.add(client);
    this.limits.add(client.connection);
    return client;
  }

  openMany(count: number, address?: string): TestConnection[] {
    return Array.from({ length: count }, () => this.open(address)).filter((client) => client !== undefined);
  }

  passSeconds(seconds: number): void {
    this.#uptimeSeconds += seconds;
    for (const client of this.#clients) client.passSeconds(seconds);
    for (let i = 0; i < seconds; i++) this.limits.onSecond();
    this.#forgetClosed();
  }

  close(client: TestConnection | undefined): void {
    client?.terminate();
    this.#forgetClosed();
  }

  #forgetClosed(): void {
    for (const client of this.#clients) if (isClosed(client)) this.limits.delete(client.connection);
  }
}

const isClosed = ({ events }: TestConnection) => events.includes("end") || events.includes("terminate");
const areClosed = (clients: readonly TestConnection[]) => clients.map(isClosed);

async function sendAll(clients: readonly TestConnection[], text: string): Promise<void> {
  for (const client of clients) client.receive(text);
  await nextIteration();
}

describe("the maximum of connections", () => {
  test("is 64 below the limit of open files, and 20,000 at most", () => {
    expect(maxConnectionsWithin(undefined, 256)).toBe(192);
    expect(maxConnectionsWithin(1_000, 256)).toBe(192);
    expect(maxConnectionsWithin(100, 256)).toBe(100);
    expect(maxConnectionsWithin(undefined, 1_000_000)).toBe(20_000);
    expect(maxConnectionsWithin(undefined, 10)).toBe(1);
    expect(maxConnectionsWithin()).toBe(maxConnectionsWithin(20_000, maxDescriptors()));
  });

  test.each([
    ["Max open files            1024                 524288               files", 1_024],
    ["Max open files            unlimited            unlimited            files", Infinity],
    ["Max processes             127236               127236               processes", undefined],
  ])("follows from the limit of open files: %s", async (limit, expected) => {
    const path = join(temporaryDirectory("limits"), "limits");
    expect(maxDescriptors(path)).toBeUndefined();
    await Bun.write(
      path,
      `Limit                     Soft Limit           Hard Limit           Units\n${limit}\n`,
    );
    expect(maxDescriptors(path)).toBe(expected);
  });

  test("makes room for a new connection by closing the oldest that has sent nothing", async () => {
    const server = new LimitedServer({ maxConnections: 3 });
    const clients = server.openMany(3);
    await sendAll(clients.slice(0, 1), get("/"));
    expect(server.open()).toBeDefined();
    expect(areClosed(clients)).toEqual([false, true, false]);
    expect(server.limits).toMatchObject({ size: 3, evicted: 1, rejected: 0 });
  });

  test("closes a 64th of all connections at a time, so that a search for them is rare", () => {
    const server = new LimitedServer({ maxConnections: 130 });
    const clients = server.openMany(130);
    server.open();
    expect(clients.filter(isClosed)).toEqual(clients.slice(0, 3));
  });

  test("closes as many in an ordinary layout: of addresses with the most, until they are alike, the oldest first", async () => {
    const server = new LimitedServer({ maxConnections: 640 });
    const sizes = [200, 197, 150, 93];
    const groups = sizes.map((size, i) => server.openMany(size, `203.0.113.${i}`));
    for (const [i, clients] of groups.entries()) {
      for (const [n, client] of clients.entries()) if (n % 20 === i) await sendAll([client], get("/"));
      server.passSeconds(1);
    }
    await sendAll(groups.flat(), get("/"));
    expect(server.open("203.0.113.9")).toBeDefined();
    const closed = groups.map((clients) => clients.filter(isClosed));
    expect(closed.map(({ length }) => length)).toEqual([7, 3, 0, 0]);
    expect(closed[0]).toEqual(groups[0]?.slice(0, 7) ?? []);
  });

  test("closes a connection with an unfinished head before one that is idle between requests", async () => {
    const server = new LimitedServer({ maxConnections: 2 });
    const clients = server.openMany(2);
    await sendAll(clients.slice(0, 1), get("/"));
    await sendAll(clients.slice(1), "GET / HT");
    expect(server.open()).toBeDefined();
    expect(areClosed(clients)).toEqual([false, true]);
  });

  test("closes connections of the address that has the most", () => {
    const server = new LimitedServer({ maxConnections: 3 });
    const clients = [...server.openMany(1, "203.0.113.2"), ...server.openMany(2, "203.0.113.3")];
    expect(server.open("203.0.113.4")).toBeDefined();
    expect(areClosed(clients)).toEqual([false, true, false]);
  });

  test("closes the connection that was idle longest if every one has had a request", async () => {
    const server = new LimitedServer({ maxConnections: 2 });
    const clients = server.openMany(2);
    await sendAll(clients.slice(1), get("/"));
    server.passSeconds(1);
    await sendAll(clients.slice(0, 1), get("/"));
    expect(server.open()).toBeDefined();
    expect(areClosed(clients)).toEqual([false, true]);
  });

  test("closes a connection whose client has not sent the rest of its body for more than two seconds", async () => {
    const server = new LimitedServer({ maxConnections: 3 });
    const clients = [...server.openMany(1, "203.0.113.2"), ...server.openMany(2)];
    await sendAll(clients.slice(0, 1), get("/slow"));
    await sendAll(clients.slice(1), UNFINISHED_BODY);
    server.passSeconds(2);
    expect(server.open()).toBeUndefined();
    server.passSeconds(1);
    expect(server.open()).toBeDefined();
    expect(areClosed(clients)).toEqual([false, true, false]);
  });

  test("closes one of an address with more connections at once, also after a search for that address", async () => {
    const server = new LimitedServer({ maxConnections: 2 });
    const clients = server.openMany(2);
    await sendAll(clients, UNFINISHED_BODY);
    expect(server.open()).toBeUndefined();
    expect(areClosed(clients)).toEqual([false, false]);
    expect(server.open("203.0.113.3")).toBeDefined();
    expect(areClosed(clients)).toEqual([true, false]);
  });

  test("closes none at once of an address that has only one connection more", async () => {
    const server = new LimitedServer({ maxConnections: 1 });
    await sendAll(server.openMany(1), UNFINISHED_BODY);
    expect(server.open("203.0.113.2")).toBeUndefined();
  });

  test("closes new connections while every one is busy; 16 more are reserved for load balancers", async () => {
    const server = new LimitedServer({ maxConnections: 2 });
    await sendAll(server.openMany(2), get("/slow"));
    expect(server.open()).toBeUndefined();
    for (let i = 0; i < 16; i++) {
      const client = server.open(LOAD_BALANCER);
      expect(client).toBeDefined();
      if (client) await sendAll([client], get("/slow"));
    }
    expect(server.open(LOAD_BALANCER)).toBeUndefined();
    expect(server.limits).toMatchObject({ size: 18, evicted: 0, rejected: 2 });
  });

  test("is reported once when it is reached, and once when it has not been reached for 10 seconds", () => {
    const server = new LimitedServer({ maxConnections: 1 });
    server.openMany(3);
    server.passSeconds(9);
    server.open();
    server.passSeconds(9);
    expect(server.events).toEqual([
      { limit: "all", isOver: false, peer: "203.0.113.1", evicted: 1, rejected: 0 },
    ]);
    server.passSeconds(1);
    expect(server.events.slice(1)).toEqual([
      { limit: "all", isOver: true, peer: "203.0.113.1", evicted: 3, rejected: 0 },
    ]);
  });
});

describe("where connections that are not authenticated make room first", () => {
  const KEY = "Authorization: x";
  const start = () => new LimitedServer({ maxConnections: 4, evictsUnauthenticatedFirst: true });

  test("they do whatever they wait for, the oldest first, and the others stay", async () => {
    const server = start();
    const clients = server.openMany(4);
    const texts = [
      get("/", KEY),
      UNFINISHED_BODY,
      get("/slow"),
      UNFINISHED_BODY.replace("\r\n", `\r\n${KEY}\r\n`),
    ];
    for (const [n, text] of texts.entries()) await sendAll(clients.slice(n, n + 1), text);
    expect(server.openMany(2, "203.0.113.2")).toHaveLength(2);
    expect(areClosed(clients)).toEqual([false, true, true, false]);
    const more = server.openMany(9, "203.0.113.3");
    expect(areClosed(clients)).toEqual([false, true, true, false]);
    expect(more.filter((client) => !isClosed(client))).toHaveLength(2);
    expect(server.limits).toMatchObject({ size: 4, rejected: 0 });
  });

  test("an address with up to 8 connections is not before one with a single connection, and one with more is", () => {
    const server = new LimitedServer({ maxConnections: 18, evictsUnauthenticatedFirst: true });
    const [single, eight] = [server.openMany(1, "203.0.113.1"), server.openMany(8, "203.0.113.2")];
    const nine = server.openMany(9, "203.0.113.3");
    server.open("203.0.113.4");
    expect(nine.map(isClosed).indexOf(true)).toBe(0);
    server.open("203.0.113.4");
    expect(areClosed([...single, ...eight])).toEqual([true, ...Array(8).fill(false)]);
  });

  test("they do although another address has more connections that are authenticated", async () => {
    const server = new LimitedServer({ maxConnections: 10, evictsUnauthenticatedFirst: true });
    await sendAll(server.openMany(9, "203.0.113.1"), get("/", KEY));
    const other = server.openMany(1, "203.0.113.2");
    server.open("203.0.113.3");
    expect(areClosed(other)).toEqual([true]);
  });

  test("an authenticated connection whose next request is not authenticated is one of them", async () => {
    const server = start();
    const clients = server.openMany(4);
    await sendAll(clients, get("/", KEY));
    await sendAll(clients.slice(2, 3), get("/"));
    server.open();
    expect(areClosed(clients)).toEqual([false, false, true, false]);
  });

  test("those of load balancers are as everywhere", async () => {
    const server = start();
    const clients = [...server.openMany(1, LOAD_BALANCER), ...server.openMany(3)];
    await sendAll(clients, UNFINISHED_BODY);
    server.openMany(9);
    expect(areClosed(clients)).toEqual([false, true, true, true]);
  });
});

describe("the maximum of connections of an address", () => {
  test("closes further connections of that address, and no others, until one of them is closed", () => {
    const server = new LimitedServer({ maxConnectionsPerPeer: 2 });
    const [first] = server.openMany(2);
    expect(server.open()).toBeUndefined();
    expect(server.open("203.0.113.2")).toBeDefined();
    expect(server.events).toMatchObject([{ limit: "peer", isOver: false, peer: "203.0.113.1", rejected: 1 }]);
    expect(server.limits).toMatchObject({ size: 3, evicted: 0, rejected: 1 });
    server.close(first);
    expect(server.open()).toBeDefined();
  });

  test("does not apply to load balancers", () => {
    const server = new LimitedServer({ maxConnectionsPerPeer: 1 });
    expect(server.openMany(2, LOAD_BALANCER)).toHaveLength(2);
  });

  test("in a second closes further ones, of load balancers excepted, until the next second", () => {
    const server = new LimitedServer({ maxHandshakesPerSecond: 2 });
    for (const client of server.openMany(2)) server.close(client);
    expect(server.open()).toBeUndefined();
    expect(server.events).toMatchObject([
      { limit: "handshakes", isOver: false, peer: "203.0.113.1", rejected: 1 },
    ]);
    expect(server.limits).toMatchObject({ evicted: 0, rejected: 1 });
    expect(server.open("203.0.113.2")).toBeDefined();
    expect(server.openMany(3, LOAD_BALANCER)).toHaveLength(3);
    server.limits.onSecond();
    expect(server.open()).toBeDefined();
    server.passSeconds(9);
    expect(server.events.slice(1)).toEqual([
      { limit: "handshakes", isOver: true, peer: "203.0.113.1", evicted: 0, rejected: 1 },
    ]);
  });
});
