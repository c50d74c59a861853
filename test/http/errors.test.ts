import { afterEach, beforeEach, expect, test } from "bun:test";
import { type App, serveOn } from "../../src/app.ts";
import { Overloaded, Unavailable } from "../../src/contract/errors.ts";
import { toNewSecret, generateSecret } from "../../src/domain/api-keys.ts";
import type { Store } from "../../src/domain/ports.ts";
import { type Adapters, openAdapters } from "../../src/adapters.ts";
import { petJsonOf } from "../../src/http/pet-json.ts";
import { createLog } from "../../src/log.ts";
import { temporaryFolder } from "../../harness/cleanup.ts";
import { expectConforms } from "../conforms.ts";
import { configIn, NO_LIMITS, TestClock } from "../service.ts";
import { BY } from "../key-store-arguments.ts";
import { sendRaw } from "./raw.ts";

const SECRET_CAUSE = "SELECT * FROM hidden WHERE password = 'hunter2'";
const clock = new TestClock();
let folder = "";
let lines: string[];
let app: App | undefined;
beforeEach(() => {
  folder = temporaryFolder("http");
  lines = [];
});
afterEach(async () => {
  await app?.close();
});

const log = createLog({ format: "json", write: (line) => void lines.push(line) });

/** The whole service, with some adapters replaced. */
async function start(replace: (adapters: Adapters) => Adapters): Promise<string> {
  const config = configIn(folder);
  const adapters = await openAdapters(config, clock, log);
  const secret = generateSecret("production");
  const draft = { name: "test", plan: "enterprise", limits: NO_LIMITS, createdAt: clock.now() } as const;
  await adapters.keys.createKey(draft, toNewSecret(secret), BY);
  app = await serveOn(replace(adapters), config, { clock, log, requestTimeoutMs: 50 });
  return secret;
}

async function call(key: string, method = "GET", path = "/pets") {
  const response = await fetch(`${app?.url}${path}`, {
    method,
    headers: { Authorization: `Bearer ${key}`, "Content-Type": "application/json" },
    ...(method !== "GET" && {
      body: method === "PATCH" ? '{"status":"completed"}' : '{"name":"Rex","categoryId":1,"petId":1}',
    }),
  });
  const bodyText = await response.text();
  expectConforms(
    undefined,
    { method, path },
    { status: response.status, headers: response.headers, bodyText },
  );
  expect(bodyText).not.toContain("hidden");
  return {
    status: response.status,
    headers: response.headers,
    body: JSON.parse(bodyText) as { code: string; message: string },
  };
}

function broken(fail: () => never | Promise<never>): Pick<Adapters, "store" | "petJson"> {
  const store: Store = {
    listPets: fail,
    getPet: fail,
    createPet: async () => fail(),
    listOrders: fail,
    getOrder: fail,
    placeOrder: async () => fail(),
    updateOrder: async () => fail(),
    close: async () => {},
  };
  return { store, petJson: petJsonOf(store) };
}

const REQUESTS = [
  ["GET", "/pets"],
  ["GET", "/pets/1"],
  ["POST", "/pets"],
  ["GET", "/store/orders"],
  ["POST", "/store/orders"],
  ["GET", "/store/orders/1"],
  ["PATCH", "/store/orders/1"],
] as const;

for (const [method, path] of REQUESTS) {
  test(`${method} ${path} 500: an internal error is logged with its cause, and the client sees no details`, async () => {
    const key = await start((adapters) => ({
      ...adapters,
      ...broken(() => {
        throw new Error("broken", { cause: SECRET_CAUSE });
      }),
    }));
    const { status, body, headers } = await call(key, method, path);
    expect(status).toBe(500);
    expect(body.message).toBe("An internal error occurred. It has been logged.");
    expect(lines).toHaveLength(1);
    expect(lines[0]).toContain('"level":"error","event":"request.failed"');
    expect(lines[0]).toContain(`"requestId":"${headers.get("x-request-id")}"`);
    expect(lines[0]).toContain("hunter2");
  });

  test(`${method} ${path} 503: the database is unavailable`, async () => {
    const key = await start((adapters) => ({
      ...adapters,
      ...broken(() => {
        throw new Unavailable("unavailable", { cause: SECRET_CAUSE, retryAfterSeconds: 3 });
      }),
    }));
    const requestIds: unknown[] = [];
    for (let i = 0; i < 5; i++) {
      const { status, headers, body } = await call(key, method, path);
      requestIds.push(headers.get("x-request-id"));
      expect([status, headers.get("retry-after")]).toEqual([503, "3"]);
      expect(body.message).toBe("The service is temporarily unavailable. Retry after 3 seconds.");
    }
    const ids = lines.map((line) => JSON.parse(line).requestId);
    expect(ids).toEqual(requestIds);
  });

  test(`${method} ${path} 503: the database does not respond within the timeout`, async () => {
    const key = await start((adapters) => ({
      ...adapters,
      ...broken(() => new Promise<never>(() => {})),
    }));
    const { status, body } = await call(key, method, path);
    expect(status).toBe(503);
    expect(body.message).toBe("The service is temporarily unavailable. Retry after 1 second.");
  });
}

/** The adapter with some of its methods replaced. */
function replaced<T extends object>(adapter: T, methods: Partial<T>): T {
  return new Proxy(adapter, {
    get(target, name) {
      const method: unknown = Reflect.get(methods, name) ?? Reflect.get(target, name);
      return typeof method === "function" ? method.bind(target) : method;
    },
  });
}

const rateLimitHeaders = ({ headers }: { headers: Headers }) =>
  ["limit", "remaining", "reset"].map((name) => Number(headers.get(`x-ratelimit-${name}`)));

function breaks(): never {
  throw new Error("broken", { cause: SECRET_CAUSE });
}

test("any 500: the rate limiter throws, and the headers show the usage before this request", async () => {
  let isBroken = false;
  const key = await start(({ rateLimiter, ...adapters }) => ({
    ...adapters,
    rateLimiter: replaced(rateLimiter, {
      decide: (subject, limits) => (isBroken ? breaks() : rateLimiter.decide(subject, limits)),
    }),
  }));
  const before = await call(key);
  expect(rateLimitHeaders(before).slice(0, 2)).toEqual([1_000_000_000, 999_999_999]);
  isBroken = true;
  const { status, headers } = await call(key);
  expect(status).toBe(500);
  expect(rateLimitHeaders({ headers })).toEqual(rateLimitHeaders(before));
  expect(headers.has("retry-after")).toBe(false);
  expect(lines).toHaveLength(1);
});

test("any 500: nothing is known of the usage, and the headers show an unused limit", async () => {
  let isBroken = false;
  const key = await start(({ rateLimiter, ...adapters }) => ({
    ...adapters,
    rateLimiter: replaced(rateLimiter, {
      decide: (subject, limits) => (isBroken ? breaks() : rateLimiter.decide(subject, limits)),
      peek: (subject, limits) => (isBroken ? breaks() : rateLimiter.peek(subject, limits)),
    }),
  }));
  await call(key);
  isBroken = true;
  const response = await call(key);
  expect(response.status).toBe(500);
  const resetAt = clock.now() / 1000 + 86_400;
  expect(rateLimitHeaders(response)).toEqual([1_000_000_000, 1_000_000_000, resetAt]);
});

test("any 500: authentication throws, and the headers show the usage of the address", async () => {
  const key = await start(({ keys, ...adapters }) => ({
    ...adapters,
    keys: replaced(keys, { findCredential: breaks }),
  }));
  await call("invalid");
  const response = await call(key);
  expect(response.status).toBe(500);
  expect(rateLimitHeaders(response)).toEqual([300, 299, clock.now() / 1000 + 60]);
});

test("any 503: the rate limiter cannot decide, with Retry-After and the usage before this request", async () => {
  const key = await start(({ rateLimiter, ...adapters }) => ({
    ...adapters,
    rateLimiter: replaced(rateLimiter, {
      decide: () => Promise.reject(new Unavailable("the queue is full")),
    }),
  }));
  for (let i = 0; i < 3; i++) {
    const response = await call(key);
    expect([response.status, response.body.code]).toEqual([503, "unavailable"]);
    expect(response.headers.get("retry-after")).toBe("1");
    expect(rateLimitHeaders(response).slice(0, 2)).toEqual([1_000_000_000, 1_000_000_000]);
  }
  expect(lines).toHaveLength(3);
});

test("any 503: the database is unavailable and the key is not in the cache", async () => {
  const key = await start((adapters) => ({
    ...adapters,
    keys: new Proxy(adapters.keys, {
      get(keys, name) {
        if (name === "findCredential") return () => Promise.reject(new Unavailable("unavailable"));
        const method: unknown = Reflect.get(keys, name);
        return typeof method === "function" ? method.bind(keys) : method;
      },
    }),
  }));
  const { status, headers, body } = await call(key);
  expect([status, headers.get("retry-after")]).toEqual([503, "1"]);
  expect(body.message).toBe("The API key cannot be verified right now. Retry after 1 second.");
  expect(lines.map((line) => JSON.parse(line))).toMatchObject([
    { event: "request.unavailable", where: "authentication", requestId: headers.get("x-request-id") },
  ]);
});

test("any 503: a queue is full, which is an event of its own", async () => {
  const key = await start(({ rateLimiter, ...adapters }) => ({
    ...adapters,
    rateLimiter: replaced(rateLimiter, { decide: () => Promise.reject(new Overloaded("the queue is full")) }),
  }));
  const { status, headers } = await call(key);
  expect(status).toBe(503);
  expect(lines.map((line) => JSON.parse(line))).toMatchObject([
    { event: "server.overloaded", reason: "the queue is full", requestId: headers.get("x-request-id") },
  ]);
});

test.each([
  [501, "GET / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip\r\n\r\n"],
  [505, "GET / HTTP/2.0\r\nHost: x\r\n\r\n"],
])("%d: HTTP that is not supported is an event with the id of the request", async (status, bytes) => {
  await start((adapters) => adapters);
  const text = await sendRaw(app?.url ?? "", bytes);
  const requestId = /^x-request-id: (.*)$/im.exec(text)?.[1]?.trim();
  expect(lines.map((line) => JSON.parse(line))).toMatchObject([
    { event: "request.unsupported", level: "info", status, requestId },
  ]);
});

test("a client that sends malformed HTTP causes no event", async () => {
  await start((adapters) => adapters);
  expect(await sendRaw(app?.url ?? "", "nonsense\r\n\r\n")).toStartWith("HTTP/1.1 400 ");
  expect(lines).toEqual([]);
});

test("createPet 201: a body that takes longer than the timeout to arrive", async () => {
  const key = await start((adapters) => adapters);
  const body = '{"name":"Rex","categoryId":1}';
  const head = `POST /v1/pets HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\nContent-Type: application/json\r\n`;
  const { hostname, port } = new URL(app?.url ?? "");
  const response = Promise.withResolvers<string>();
  const socket = await Bun.connect({
    hostname,
    port: Number(port),
    socket: { data: (_, bytes) => response.resolve(bytes.toString()) },
  });
  socket.write(`${head}Content-Length: ${body.length}\r\n\r\n${body.slice(0, 5)}`);
  // Twice the timeout of this service.
  await Bun.sleep(100);
  socket.write(body.slice(5));
  expect(await response.promise).toStartWith("HTTP/1.1 201 ");
  expect(lines).toEqual([]);
  socket.end();
});
