import { connect, type Socket } from "node:net";
import { combinations } from "../harness/combinations.ts";
import { generateSecret } from "../../src/domain/secrets.ts";
import { PET_STATUSES } from "../../src/domain/pets-and-orders.ts";
import type { HostileResponse } from "../harness/hostile-server.ts";
import { worstBodies } from "./worst-bodies.ts";

/** The engines: `sqlite` is one server; `shared` is two servers on one PostgreSQL. */
export const ENGINES = ["sqlite", "shared"] as const;
export type Engines = (typeof ENGINES)[number];

/** The bounds that must hold during the attack, besides the latency of a well-behaved client. */
interface Bars {
  /** The 99th percentile of the latencies; by default 50 ms. */
  readonly p99Ms?: number;
  /** The memory of a server. */
  readonly memoryMb?: number;
  /** The processor time of a server, as a share of its core. */
  readonly cpuShare?: number;
  /** The transactions of PostgreSQL by all servers and clients. */
  readonly transactionsPerSecond?: number;
}

/** Load that must not harm other clients. */
export interface Attack {
  readonly name: string;
  readonly title: string;
  /** The engines that it applies to; by default only `sqlite`. */
  readonly engines?: readonly Engines[];
  /** Whether it attacks only the first of the servers. The well-behaved client uses the last. */
  readonly firstServerOnly?: true;
  /** Whether it attacks the listener for operators, with the token of an operator instead of an API key. */
  readonly asOperator?: true;
  /** Whether people sign in meanwhile with a provider of OpenID Connect. All of them must get in. */
  readonly peopleSignIn?: true;
  /** The number of pets; by default 20. */
  readonly pets?: number;
  /** The number of sold pets of category 1 that are imported before the start. */
  readonly soldPets?: number;
  /** Matches what a server logs when the attack succeeds. */
  readonly logs?: RegExp;
  readonly bars?: Bars;
  /**
   * Whether the effect is measured after the attack has done its work: the measurement begins when the attack is ready,
   * and the memory is that at the end instead of the peak.
   */
  readonly isMeasuredWhenReady?: true;
  /** The number of questions to servers that somebody stores in the database each second. */
  readonly questions?: number;
  /** How the collector responds to which the server exports the spans of all requests. */
  readonly collector?: HostileResponse;
  /** The limit of open files of the server, if the attack depends on it. */
  readonly openFiles?: number;
  /** Describes the connections of the attack. It gets a valid API key or token, which some attacks need. */
  connections?(key: string): Connections;
}

export interface Connections {
  /** The number of connections that are open at once. */
  readonly count: number;
  /** The number of connections from one loopback address. Further ones come from the next address of 127.0.0.0/8. */
  readonly perAddress?: number;
  /** What replaces a connection that ends: by default one from the same address. */
  readonly replacement?: "none" | "from a new address";
  /** Whether the attack begins when all connections are open: an attacker who already sends is slow to open more. */
  readonly opensAllFirst?: true;
  /** The number of responses after which the attack is ready. By default it is ready when every connection attacks. */
  readonly readyAfter?: number;
  /** Attacks on one connection. */
  onOpen(socket: Socket): void;
}

const ignoreResponses = (socket: Socket) => socket.on("data", () => {});

/** The query strings with every combination of the filters of pets, as clients with a Free key can send them. */
const FILTERED = combinations({ categoryId: [1, 40], status: PET_STATUSES, limit: [100] }).map((query) =>
  Object.entries(query)
    .map(([name, value]) => `${name}=${value}`)
    .join("&"),
);

const MAX_BODY_BYTES = 16_384;
/** A head of just under 16 KiB in 120 header fields. */
const LARGE_HEAD = Array.from({ length: 120 }, (_, i) => `X-Header-${i}: ${"x".repeat(115)}\r\n`).join("");
const SLOW_HEADS_INTERVAL_MS = 5;
/** A long head, which is costly to read again. */
const LONG_HEAD = `GET /v1/pets HTTP/1.1\r\nHost: x\r\nX-Long: ${"x".repeat(8_192)}`;

/** Lists of 14 kB, which a server might read element by element. */
const LIST_HEADERS = ["Accept-Encoding", "If-None-Match", "Cookie"].map(
  (name) => `GET /openapi.json HTTP/1.1\r\nHost: x\r\n${name}: ${"a;q=1,".repeat(2_300)}\r\n\r\n`,
);

const requestWithKey = (key: string, query = "limit=20") =>
  `GET /v1/pets?${query} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\n\r\n`;
/** Requests with each combination of filters in turn, each with a parameter that no request had before. */
function filteredRequests(key: string): () => string {
  let sent = 0;
  return () => requestWithKey(key, `${FILTERED[sent % FILTERED.length]}&n=${sent++}`);
}

/**
 * A request with a key that has the right prefix and checksum, a new one each time, so that the server must look it up.
 */
const requestWithUnknownKey = () => requestWithKey(generateSecret("production"));

/** Matches a success, and the response to a connection above the maximum of its address. */
const EXPECTED_RESPONSE = /^HTTP\/1\.1 (?:200 |503 [^]*\r\nRetry-After: 1\r\n[^]*too many open connections)/;

const requestWith = (body: string, key: string) =>
  `POST /v1/pets HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\nContent-Type: application/json\r\n` +
  `Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;

/** A request to the operators' API, which is a POST if it has a body. */
function requestAs(token: string, path: string, body?: string): string {
  const line = `${body === undefined ? "GET" : "POST"} ${path} HTTP/1.1`;
  const head = `${line}\r\nHost: localhost\r\nAuthorization: Bearer ${token}\r\n`;
  if (body === undefined) return `${head}\r\n`;
  return `${head}Content-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
}

/** A request to the operators' API without a credential. */
export function postOf(path: string, body: string): string {
  const head = `POST ${path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n`;
  return `${head}Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
}

/** Steps of sign-ins that lead nowhere, in turn. */
function junkSignIns(): () => string {
  let sent = 0;
  return () => {
    const state = `${sent++}`;
    const provider = { response: `?code=a&state=${state}`, state, nonce: "a", codeVerifier: "a" };
    const bodies = [{ provider }, { token: `guess ${state}` }, { code: `guess ${state}` }];
    const body = bodies[sent % (bodies.length + 1)];
    return body ? postOf("/api/session", JSON.stringify(body)) : postOf("/api/session/provider", "{}");
  };
}

/** Connections of one address that send the next request after each response. */
function inTurn(count: number, request: string): Connections {
  return { count, onOpen: (socket) => sendInTurn(socket, () => request) };
}

/** Ends the attack. An error that is thrown would only close the connection. */
function fail(reason: string): never {
  process.stderr.write(`${reason}\n`);
  process.exit(1);
}

/** Sends the next request after each response, which is one short segment. */
function sendInTurn(socket: Socket, next: () => string): void {
  socket.on("data", () => socket.writable && socket.write(next()));
  socket.write(next());
}

/** Without an attack it is 3 to 5 ms. */
const MAX_P99_OF_OPERATORS_MS = 15;

export const ATTACKS: readonly Attack[] = [
  // The other rows are compared with this one.
  { name: "none", title: "no attack", engines: ["sqlite", "shared"] },
  {
    name: "collector",
    title: "a collector of spans whose response does not end",
    bars: { memoryMb: 150 },
    collector: "an endless body",
  },
  // Servers and commands ask servers with rows of a table, of which there are never more than some hundred.
  {
    name: "questions",
    title: "20,000 questions to servers in the database each second",
    engines: ["sqlite", "shared"],
    bars: { memoryMb: 150 },
    questions: 20_000,
  },
  // These bodies are costly to parse, and are sent repeatedly. They need a key whose rate limit allows them.
  {
    name: "json-bodies",
    title: "300 costly JSON bodies at once",
    // The bound is 200 MB, plus 32 MB that the request log may take.
    bars: { memoryMb: 232 },
    connections(key) {
      const requests = [...worstBodies(MAX_BODY_BYTES).values()].map((body) => requestWith(body, key));
      let sent = 0;
      // All connections send the same body before the next body begins.
      const next = () => requests[Math.floor(sent++ / 300) % requests.length] ?? "";
      return { count: 300, onOpen: (socket) => sendInTurn(socket, next) };
    },
  },
  // These are more connections than a server with 256 file descriptors can hold, none of which ever sends a byte.
  {
    name: "silent",
    title: "400 silent connections, 256 open files",
    openFiles: 256,
    connections: () => ({ count: 400, onOpen() {} }),
  },
  // Every connection sends one large request, each with other header fields, gets its response, and then is idle.
  {
    name: "large-heads",
    title: "10,000 idle connections after heads of 16 KiB",
    openFiles: 12_000,
    bars: { memoryMb: 250 },
    isMeasuredWhenReady: true,
    connections() {
      let sent = 0;
      const onOpen = (socket: Socket) => {
        ignoreResponses(socket);
        socket.write(`GET /v1/pets HTTP/1.1\r\nHost: x\r\nX-Number: ${sent++}\r\n${LARGE_HEAD}\r\n`);
      };
      return { count: 10_000, perAddress: 200, replacement: "none", readyAfter: 10_000, onOpen };
    },
  },
  // The address may have 256 connections, which stay open. Of the others, 100 a second get a response. Each that is
  // closed is opened again.
  {
    name: "one-address",
    title: "1,000 connections from one address",
    bars: { memoryMb: 100, cpuShare: 0.6 },
    logs: /connections\.address-limit-reached/,
    connections(key) {
      const onOpen = (socket: Socket) => {
        socket.once(
          "data",
          (data) => EXPECTED_RESPONSE.test(String(data)) || fail(`unexpected: ${String(data)}`),
        );
        socket.write(requestWithKey(key));
      };
      return { count: 1_000, perAddress: 1_000, readyAfter: 256 + 100, onOpen };
    },
  },
  // These headers are costly to parse, and are sent on all connections of one address at once.
  {
    name: "list-headers",
    title: "250 requests with a list of 14 kB at once",
    connections() {
      let sent = 0;
      const next = () => LIST_HEADERS[sent++ % LIST_HEADERS.length] ?? "";
      return { count: 250, perAddress: 250, onOpen: (socket) => sendInTurn(socket, next) };
    },
  },
  // No pet matches most combinations. An unknown parameter that is new each time makes no response of a cache fit.
  {
    name: "filters",
    title: "60 requests at once with every combination of filters, with 1,000,000 sold pets of a category",
    soldPets: 1_000_000,
    bars: { p99Ms: 20 },
    connections(key) {
      const next = filteredRequests(key);
      return { count: 60, onOpen: (socket) => sendInTurn(socket, next) };
    },
  },
  // A Free key may send them once a minute.
  {
    name: "filter-bursts",
    title:
      "60 requests at once in each second with every combination of filters, with 1,000,000 sold pets of a category",
    engines: ["shared"],
    soldPets: 1_000_000,
    bars: { p99Ms: 20 },
    connections(key) {
      const next = filteredRequests(key);
      const onOpen = (socket: Socket) => {
        ignoreResponses(socket);
        const send = () => socket.writable && socket.write(next());
        const timer = setInterval(() => setTimeout(send, 1_000 - (Date.now() % 1_000)), 1_000);
        socket.on("close", () => clearInterval(timer));
      };
      return { count: 60, onOpen };
    },
  },
  // This is the largest response that needs no key, requested as often as the server sends it.
  {
    name: "pages",
    title: "200 connections pipeline /openapi.json",
    connections: () => pipelines(200, "/openapi.json"),
  },
  // These requests have no key. They get 401 responses at first, and then 429.
  {
    name: "rejections",
    title: "2,000 connections pipeline rejected requests",
    engines: ["sqlite", "shared"],
    connections: () => pipelines(2_000, "/v1/pets"),
  },
  {
    name: "unknown-keys",
    title: "200 connections pipeline plausible unknown keys",
    engines: ["sqlite", "shared"],
    bars: { transactionsPerSecond: 2_000 },
    connections() {
      const requests = () => Array.from({ length: 20 }, requestWithUnknownKey).join("");
      return { count: 200, perAddress: 10, onOpen: (socket) => repeatText(socket, requests) };
    },
  },
  // Together, the connections send 20,000 segments a second.
  {
    name: "slow-heads",
    title: "heads byte by byte, 20,000 segments a second",
    connections() {
      const onOpen = (socket: Socket) => {
        socket.setNoDelay(true);
        ignoreResponses(socket);
        socket.write(LONG_HEAD);
        const timer = setInterval(() => socket.writable && socket.write("x"), SLOW_HEADS_INTERVAL_MS);
        socket.on("close", () => clearInterval(timer));
      };
      return { count: 100, onOpen };
    },
  },
  // Whoever has a token of the least role can send these as fast as the server responds.
  {
    name: "operator-lists",
    title: "64 connections of an operator request pages of 500 pets",
    asOperator: true,
    pets: 1_000,
    bars: { p99Ms: MAX_P99_OF_OPERATORS_MS },
    connections: (token) => inTurn(64, requestAs(token, "/api/pets?limit=500")),
  },
  {
    name: "operator-metrics",
    title: "64 connections of an operator request /metrics",
    asOperator: true,
    bars: { p99Ms: MAX_P99_OF_OPERATORS_MS },
    connections: (token) => inTurn(64, requestAs(token, "/metrics")),
  },
  // The runtime reserves much memory for each of these objects.
  {
    name: "operator-bodies",
    title: "64 connections send costly JSON bodies of 64 KiB to the operators' API",
    asOperator: true,
    bars: { p99Ms: MAX_P99_OF_OPERATORS_MS, memoryMb: 200 },
    connections(token) {
      const objects = `{"secret":[0${',{"999":0}'.repeat(6_500)}]}`;
      return inTurn(64, requestAs(token, "/api/keys/find", objects));
    },
  },
  // Nobody needs a credential for these. Meanwhile people sign in, some of them from the address of the attacker.
  {
    name: "sign-ins",
    title: "8 connections begin and end sign-ins with the company's provider",
    asOperator: true,
    peopleSignIn: true,
    bars: { memoryMb: 200 },
    connections() {
      const next = junkSignIns();
      return { count: 8, onOpen: (socket) => sendInTurn(socket, next) };
    },
  },
  // These connections request large responses and never read them.
  {
    name: "slow-readers",
    title: "500 connections that do not read responses",
    bars: { memoryMb: 200 },
    connections(key) {
      const onOpen = (socket: Socket) => {
        socket.pause();
        socket.write(requestWithKey(key, "limit=100").repeat(200));
      };
      return { count: 500, onOpen };
    },
  },
  // No address comes near its limit, and each has a plausible key. The servers must look up every key, and must not
  // store anything about an address in PostgreSQL.
  {
    name: "many-addresses",
    title: "unknown keys, each from another address",
    engines: ["shared"],
    bars: { transactionsPerSecond: 6_000 },
    connections() {
      const onOpen = (socket: Socket) => {
        socket.once("data", () => socket.end());
        socket.write(requestWithUnknownKey());
      };
      return { count: 200, perAddress: 1, replacement: "from a new address", onOpen };
    },
  },
];

const OPENED_AT_ONCE = 50;
const PAUSE_MS = 5;
/** The pause before a new connection to a server that closes connections at once. */
const RECONNECT_MS = 100;

/** Holds connections open for as long as this process runs. Resolves when the whole attack has begun. */
export async function attack(port: number, connections: Connections): Promise<void> {
  const { count, perAddress = 100, replacement, opensAllFirst, readyAfter, onOpen } = connections;
  const sockets = new Set<Socket>();
  const isReady = Promise.withResolvers<void>();
  let responses = 0;
  let isAttacking = opensAllFirst !== true;
  let nextNumber = count;
  const open = (number: number) => {
    const localAddress = addressOf(Math.floor(number / perAddress));
    const socket = connect({ host: "127.0.0.1", port, localAddress });
    sockets.add(socket);
    socket.on("connect", () => isAttacking && onOpen(socket));
    if (readyAfter !== undefined) socket.once("data", () => ++responses === readyAfter && isReady.resolve());
    socket.on("error", () => {});
    socket.on("close", () => {
      sockets.delete(socket);
      if (replacement === "none") return;
      setTimeout(() => open(replacement === undefined ? number : nextNumber++), RECONNECT_MS);
    });
  };
  for (let number = 0; number < count; number++) {
    open(number);
    if (number % OPENED_AT_ONCE === 0) await Bun.sleep(PAUSE_MS);
  }
  if (opensAllFirst) {
    isAttacking = true;
    for (const socket of sockets) if (!socket.connecting) onOpen(socket);
  }
  if (readyAfter !== undefined) await isReady.promise;
}

/**
 * The addresses of attackers, starting with 127.0.0.2, so that the client at 127.0.0.1 shares its address with nobody.
 */
export function addressOf(index: number): string {
  const host = index + 2;
  return `127.${host >> 16}.${(host >> 8) & 255}.${host & 255}`;
}

function pipelines(count: number, path: string): Connections {
  const text = `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`.repeat(100);
  return { count, opensAllFirst: true, onOpen: (socket) => repeatText(socket, () => text) };
}

/** Writes texts as fast as the server reads them, and drops every response. */
function repeatText(socket: Socket, text: () => string): void {
  const write = () => {
    while (socket.writable && socket.write(text()));
  };
  ignoreResponses(socket);
  socket.on("drain", write);
  write();
}
