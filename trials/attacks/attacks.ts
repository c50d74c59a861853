import { connect, type Socket } from "node:net";
import { generateSecret } from "../../src/domain/api-keys.ts";
import { worstBodies } from "./worst-bodies.ts";

/** `sqlite`: one server. `shared`: two servers on one PostgreSQL and one Valkey. */
export const ENGINES = ["sqlite", "shared"] as const;
export type Engines = (typeof ENGINES)[number];

/** What must hold while the attack runs. */
export interface Bars {
  /** The latency of a well-behaved client. */
  readonly p99Ms: number;
  /** The memory of a server. */
  readonly memoryMb?: number;
  /** The entries in Valkey, of which every API key that is used has one. */
  readonly valkeyEntries?: number;
  /** The transactions of PostgreSQL, for all servers and clients. */
  readonly transactionsPerSecond?: number;
}

/** Load that must not harm other clients. */
export interface Attack {
  readonly name: string;
  readonly title: string;
  /** What it applies to; by default `sqlite` alone. */
  readonly engines?: readonly Engines[];
  /** Whether it attacks the first of the servers only, and not each of them. The well-behaved client uses the last. */
  readonly firstServerOnly?: true;
  /** What a server logs when the attack reaches its aim. */
  readonly logs?: RegExp;
  readonly bars: Bars;
  /**
   * Whether the attack is what remains when it has done its work: the measurement begins when it is ready, and the
   * memory is that at the end instead of the peak.
   */
  readonly isMeasuredWhenReady?: true;
  /** Limit of open files of the server, if the attack depends on it. */
  readonly openFiles?: number;
  /** Attacks until the signal aborts, and calls `onReady` when all of it has begun. */
  run(target: Target, signal: AbortSignal, onReady: () => void): Promise<void>;
}

/** Attacks with connections that are all alike. */
function holding(options: (target: Target) => ConnectionOptions): Attack["run"] {
  return (target, signal, onReady) => holdConnections(target, { ...options(target), onReady }, signal);
}

const ignoreResponses = (socket: Socket) => socket.on("data", () => {});

const MAX_BODY_BYTES = 16_384;
/** Just under 16 KiB in 120 header fields. */
const LARGE_HEAD = Array.from({ length: 120 }, (_, i) => `X-Header-${i}: ${"x".repeat(115)}\r\n`).join("");
const SLOW_HEADS_INTERVAL_MS = 5;
/** A long head makes it costly to look at all of it again. */
const LONG_HEAD = `GET /v1/pets HTTP/1.1\r\nHost: x\r\nX-Long: ${"x".repeat(8_192)}`;

const repeated = (path: string) => `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`.repeat(100);
const PAGES = repeated("/openapi.json");
/** Lists of 14 kB, which a server might read element by element. */
const LIST_HEADERS = ["Accept-Encoding", "If-None-Match", "Cookie"].map(
  (name) => `GET /openapi.json HTTP/1.1\r\nHost: x\r\n${name}: ${"a;q=1,".repeat(2_300)}\r\n\r\n`,
);
const REJECTED = repeated("/v1/pets");

const requestWithKey = (key = "", limit = 20) =>
  `GET /v1/pets?limit=${limit} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\n\r\n`;
/** A key with the right prefix and checksum, each another, so that the server has to look it up. */
const requestWithUnknownKey = () => requestWithKey(generateSecret("production"));

const requestWith = (body: string, key = "") =>
  `POST /v1/pets HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\nContent-Type: application/json\r\n` +
  `Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;

/** Sends the next request after each response: each response is one short segment. */
function sendInTurn(socket: Socket, next: () => string): void {
  socket.on("data", () => socket.writable && socket.write(next()));
  socket.write(next());
}

export const ATTACKS: readonly Attack[] = [
  // What the other rows are compared with.
  {
    name: "none",
    title: "no attack",
    engines: ["sqlite", "shared"],
    bars: { p99Ms: 50 },
    run: async (_target, _signal, onReady) => onReady(),
  },
  // Bodies that cost much to parse, again and again. They need a key whose rate limit lets them through.
  {
    name: "json-bodies",
    title: "300 costly JSON bodies at once",
    // 200 MB, and 32 MB that the request log may take.
    bars: { p99Ms: 50, memoryMb: 232 },
    run: holding(({ key }) => {
      const requests = [...worstBodies(MAX_BODY_BYTES).values()].map((body) => requestWith(body, key));
      let sent = 0;
      // All connections send the same body before the next one begins.
      const next = () => requests[Math.floor(sent++ / 300) % requests.length] ?? "";
      return { count: 300, perAddress: 100, reconnects: true, onOpen: (socket) => sendInTurn(socket, next) };
    }),
  },
  // More connections than a server with 256 file descriptors can hold, none of which ever sends a byte.
  {
    name: "silent",
    title: "400 silent connections, 256 open files",
    openFiles: 256,
    bars: { p99Ms: 50 },
    run: holding(() => ({ count: 400, perAddress: 100, reconnects: true, onOpen() {} })),
  },
  // Every connection sends one large request, each with other header fields, gets its response, and is idle then.
  {
    name: "large-heads",
    title: "10,000 idle connections after heads of 16 KiB",
    openFiles: 12_000,
    bars: { p99Ms: 50, memoryMb: 250 },
    isMeasuredWhenReady: true,
    run: holding(() => {
      let sent = 0;
      const onOpen = (socket: Socket) => {
        ignoreResponses(socket);
        socket.write(`GET /v1/pets HTTP/1.1\r\nHost: x\r\nX-Number: ${sent++}\r\n${LARGE_HEAD}\r\n`);
      };
      return { count: 10_000, perAddress: 200, reconnects: false, isReadyWhenAnswered: true, onOpen };
    }),
  },
  // Headers that cost much to parse, on all connections of one address at once.
  {
    name: "list-headers",
    title: "250 requests with a list of 14 kB at once",
    bars: { p99Ms: 50 },
    run: holding(() => {
      let sent = 0;
      const next = () => LIST_HEADERS[sent++ % LIST_HEADERS.length] ?? "";
      return { count: 250, perAddress: 250, reconnects: true, onOpen: (socket) => sendInTurn(socket, next) };
    }),
  },
  // The largest response that needs no key, as often as the server sends it.
  {
    name: "pages",
    title: "200 connections pipeline /openapi.json",
    bars: { p99Ms: 50 },
    run: holding(() => ({
      count: 200,
      perAddress: 100,
      reconnects: true,
      opensAllFirst: true,
      onOpen: (socket) => repeatText(socket, () => PAGES),
    })),
  },
  // Requests without a key: 401 at first, then 429.
  {
    name: "rejections",
    title: "2,000 connections pipeline rejected requests",
    engines: ["sqlite", "shared"],
    bars: { p99Ms: 50 },
    run: holding(() => ({
      count: 2_000,
      perAddress: 100,
      reconnects: true,
      opensAllFirst: true,
      onOpen: (socket) => repeatText(socket, () => REJECTED),
    })),
  },
  {
    name: "unknown-keys",
    title: "200 connections pipeline plausible unknown keys",
    engines: ["sqlite", "shared"],
    bars: { p99Ms: 50, transactionsPerSecond: 2_000 },
    run: holding(() => {
      const requests = () => Array.from({ length: 20 }, requestWithUnknownKey).join("");
      return {
        count: 200,
        perAddress: 10,
        reconnects: true,
        onOpen: (socket) => repeatText(socket, requests),
      };
    }),
  },
  // Together, the connections send 20,000 segments a second.
  {
    name: "slow-heads",
    title: "heads byte by byte, 20,000 segments a second",
    bars: { p99Ms: 50 },
    run: holding(() => {
      const onOpen = (socket: Socket) => {
        socket.setNoDelay(true);
        ignoreResponses(socket);
        socket.write(LONG_HEAD);
        const timer = setInterval(() => socket.writable && socket.write("x"), SLOW_HEADS_INTERVAL_MS);
        socket.on("close", () => clearInterval(timer));
      };
      return { count: 100, perAddress: 100, reconnects: true, onOpen };
    }),
  },
  // Requests large responses and never reads them.
  {
    name: "slow-readers",
    title: "500 connections that do not read responses",
    bars: { p99Ms: 50, memoryMb: 200 },
    run: holding(({ key }) => {
      const onOpen = (socket: Socket) => {
        socket.pause();
        socket.write(requestWithKey(key, 100).repeat(200));
      };
      return { count: 500, perAddress: 100, reconnects: true, onOpen };
    }),
  },
  // No address comes near its limit, and each has a plausible key: the servers have to look up every key, and must not
  // store anything about an address in Valkey.
  {
    name: "many-addresses",
    title: "unknown keys, each from another address",
    engines: ["shared"],
    bars: { p99Ms: 50, valkeyEntries: 3, transactionsPerSecond: 6_000 },
    run: holding(() => {
      const onOpen = (socket: Socket) => {
        socket.once("data", () => socket.end());
        socket.write(requestWithUnknownKey());
      };
      return { count: 200, perAddress: 1, reconnects: "from a new address", onOpen };
    }),
  },
  // More requests at once than a server queues for Valkey, with a key whose limits let them through. The overflow gets
  // 503, and is no reason to count without Valkey: that would grant every key its limit once more.
  {
    name: "valkey-queue",
    title: "13,000 connections with a valid key",
    engines: ["shared"],
    firstServerOnly: true,
    openFiles: 16_000,
    isMeasuredWhenReady: true,
    logs: /the queue for Valkey is full/,
    bars: { p99Ms: 50 },
    run: holding(({ key }) => {
      const request = requestWithKey(key, 1);
      const onOpen = (socket: Socket) => sendInTurn(socket, () => request);
      return { count: 13_000, perAddress: 200, reconnects: true, opensAllFirst: true, onOpen };
    }),
  },
];

export function attacksOn(engines: Engines): readonly Attack[] {
  return ATTACKS.filter((attack) => (attack.engines ?? ["sqlite"]).includes(engines));
}

export interface Target {
  readonly host: string;
  readonly port: number;
  /** A valid API key, for attacks that need one. */
  readonly key?: string;
}

export interface ConnectionOptions {
  /** How many connections are open at once. */
  readonly count: number;
  /** Connections from one loopback address; the next ones come from the next address of 127.0.0.0/8. */
  readonly perAddress: number;
  /** Whether a connection that ends is replaced by a new one: from its address, or from one that was not used yet. */
  readonly reconnects: boolean | "from a new address";
  /** Whether the attack begins when all connections are open: an attacker who already sends is slow to open more. */
  readonly opensAllFirst?: boolean;
  /** Whether the attack is ready when every connection has got a response, and not when every one attacks. */
  readonly isReadyWhenAnswered?: boolean;
  /** Attacks on one connection. */
  onOpen(socket: Socket): void;
}

const OPENED_AT_ONCE = 50;
const PAUSE_MS = 5;
/** A server that closes connections at once is not asked again at once. */
const RECONNECT_MS = 100;

/** Holds connections open until the signal aborts. */
async function holdConnections(
  target: Target,
  options: ConnectionOptions & { onReady(): void },
  signal: AbortSignal,
): Promise<void> {
  const sockets = new Set<Socket>();
  let answered = 0;
  const countAnswer = () => {
    if (++answered === options.count) options.onReady();
  };
  let isAttacking = options.opensAllFirst !== true;
  let nextNumber = options.count;
  const open = (number: number) => {
    if (signal.aborted) return;
    const { host, port } = target;
    const localAddress = addressOf(Math.floor(number / options.perAddress));
    const socket = connect({ host, port, localAddress });
    sockets.add(socket);
    socket.on("connect", () => isAttacking && options.onOpen(socket));
    if (options.isReadyWhenAnswered) socket.once("data", countAnswer);
    socket.on("error", () => {});
    socket.on("close", () => {
      sockets.delete(socket);
      if (!options.reconnects) return;
      setTimeout(() => open(options.reconnects === true ? number : nextNumber++), RECONNECT_MS);
    });
  };
  for (let number = 0; number < options.count && !signal.aborted; number++) {
    open(number);
    if (number % OPENED_AT_ONCE === 0) await Bun.sleep(PAUSE_MS);
  }
  if (options.opensAllFirst) {
    isAttacking = true;
    for (const socket of sockets) if (!socket.connecting) options.onOpen(socket);
  }
  if (!options.isReadyWhenAnswered) options.onReady();
  await new Promise<void>((resolve) => {
    if (signal.aborted) resolve();
    signal.addEventListener("abort", () => resolve());
  });
  for (const socket of sockets) socket.destroy();
}

/** 127.0.0.2 and on, so that a client at 127.0.0.1 is nobody's neighbour. */
export function addressOf(index: number): string {
  const host = index + 2;
  return `127.${host >> 16}.${(host >> 8) & 255}.${host & 255}`;
}

/** Writes texts, as fast as the server reads, and drops every response. */
function repeatText(socket: Socket, text: () => string): void {
  const write = () => {
    while (socket.writable && socket.write(text()));
  };
  ignoreResponses(socket);
  socket.on("drain", write);
  write();
}
