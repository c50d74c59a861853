import { afterAll, afterEach, describe, expect, test } from "bun:test";
import { type Adapters, openAdapters } from "../../src/adapters/open-adapters.ts";
import { serveOn } from "../../src/app.ts";
import { Overloaded, Unavailable } from "../../src/api/errors.ts";
import type { ClientStore } from "../../src/domain/ports/pets-and-orders.ts";
import { createLog } from "../../src/observe/log.ts";
import { temporaryDirectory } from "../../trials/harness/cleanup.ts";
import { RawConnection } from "../../trials/harness/http-connection.ts";
import { bearer } from "../bearer.ts";
import { addKey, configIn, send, TestClock } from "../service.ts";
import { sendRaw } from "./raw.ts";

const SECRET_CAUSE = "SELECT * FROM hidden WHERE password = 'hunter2'";

function breaks(): never {
  throw new Error("broken", { cause: SECRET_CAUSE });
}

/** What the adapters do instead of their work. */
interface Faults {
  clientStore?: () => never | Promise<never>;
  decide?: () => never | Promise<never>;
  findCredential?: () => never | Promise<never>;
}
let faults: Faults = {};
afterEach(() => {
  faults = {};
  lines.length = 0;
});

const lines: string[] = [];
const events = () => lines.map((line) => JSON.parse(line));

/** The adapter, whose methods fail while there is a fault for them. */
function failing<T extends object>(adapter: T, faultOf: (method: string) => (() => unknown) | undefined): T {
  return new Proxy(adapter, {
    get(target, name) {
      const method: unknown = Reflect.get(target, name);
      if (typeof method !== "function") return method;
      return (...args: unknown[]) => (faultOf(String(name)) ?? method.bind(target, ...args))();
    },
  });
}

function failingAdapters(adapters: Adapters): Adapters {
  const ofStore = (method: string) => (method === "close" ? undefined : faults.clientStore);
  // Writes are promises.
  const clientStore: ClientStore = failing(adapters.clientStore, (method) => {
    const fault = ofStore(method);
    return fault && /^(create|place|update)/.test(method) ? async () => fault() : fault;
  });
  const petJson = failing(adapters.petJson, ofStore);
  return {
    ...adapters,
    clientStore,
    // Without `changes`, every request reads.
    petJson: { list: (query) => petJson.list(query), get: (id) => petJson.get(id) },
    rateLimiter: failing(adapters.rateLimiter, (method) => (method === "decide" ? faults.decide : undefined)),
    keys: failing(adapters.keys, (method) =>
      method === "findCredential" ? faults.findCredential : undefined,
    ),
  };
}

const clock = new TestClock();
const log = createLog({
  format: "json",
  write(line) {
    // Entries about the keys that the tests create are left out.
    if (!/"event":"(?:audit\.)?key\./.test(line)) lines.push(line);
  },
});
const config = configIn(temporaryDirectory("http"));
const adapters = await openAdapters(config.data, clock, log);
const app = await serveOn(failingAdapters(adapters), config, { clock, log, requestTimeoutMs: 50 });
afterAll(() => app.close());

const newKey = async () => (await addKey(adapters.keys, { createdAt: clock.now() })).secret;

async function call(key: string, method = "GET", path = "/pets") {
  const fields = method === "PATCH" ? { status: "completed" } : { name: "Rex", categoryId: 1, petId: 1 };
  const body = method !== "GET" && { body: fields };
  const { status, headers, text, json } = await send(app.url, { method, path, ...body }, key);
  expect(text).not.toContain("hidden");
  return { status, headers, body: json as { code: string; message: string } };
}

const rateLimitHeaders = ({ headers }: { headers: Headers }) =>
  ["limit", "remaining", "reset"].map((name) => Number(headers.get(`x-ratelimit-${name}`)));

describe.each([
  ["GET", "/pets"],
  ["GET", "/pets/1"],
  ["POST", "/pets"],
  ["GET", "/store/orders"],
  ["POST", "/store/orders"],
  ["GET", "/store/orders/1"],
  ["PATCH", "/store/orders/1"],
])("%s %s", (method, path) => {
  test("500: an internal error is logged with its cause, and the client sees no details", async () => {
    faults = { clientStore: breaks };
    const { status, body, headers } = await call(await newKey(), method, path);
    expect(status).toBe(500);
    expect(body.message).toBe("An internal error occurred. It has been logged.");
    expect(lines).toHaveLength(1);
    expect(lines[0]).toContain('"level":"error","event":"request.failed"');
    expect(lines[0]).toContain(`"requestId":"${headers.get("x-request-id")}"`);
    expect(lines[0]).toContain("hunter2");
  });

  test("503: the database is unavailable", async () => {
    faults = {
      clientStore() {
        throw new Unavailable("unavailable", { cause: SECRET_CAUSE, retryAfterSeconds: 3 });
      },
    };
    const { status, headers, body } = await call(await newKey(), method, path);
    expect([status, headers.get("retry-after")]).toEqual([503, "3"]);
    expect(body.message).toBe("The service is temporarily unavailable. Retry after 3 seconds.");
    expect(events()).toMatchObject([{ requestId: headers.get("x-request-id") }]);
  });

  test("503: the database does not respond within the timeout", async () => {
    faults = { clientStore: () => new Promise<never>(() => {}) };
    const { status, body } = await call(await newKey(), method, path);
    expect(status).toBe(503);
    expect(body.message).toBe("The service is temporarily unavailable. Retry after 1 second.");
  });
});

test("any 500: the rate limiter throws, and the headers show the usage before this request", async () => {
  const key = await newKey();
  const before = await call(key);
  expect(rateLimitHeaders(before).slice(0, 2)).toEqual([1_000_000_000, 999_999_999]);
  faults = { decide: breaks };
  const { status, headers } = await call(key);
  expect(status).toBe(500);
  expect(rateLimitHeaders({ headers })).toEqual(rateLimitHeaders(before));
  expect(headers.has("retry-after")).toBe(false);
  expect(lines).toHaveLength(1);
});

test("any 500: authentication throws, and the headers show the usage of the address", async () => {
  const [limit, remaining, reset] = rateLimitHeaders(await call("invalid"));
  faults = { findCredential: breaks };
  const response = await call(await newKey());
  expect(response.status).toBe(500);
  expect(rateLimitHeaders(response)).toEqual([300, remaining ?? 0, clock.now() / 1000 + 60]);
  expect([limit, reset]).toEqual([300, clock.now() / 1000 + 60]);
});

test("any 503: the rate limiter cannot decide, with Retry-After and the usage before this request", async () => {
  faults = { decide: () => Promise.reject(new Unavailable("the queue is full")) };
  const key = await newKey();
  for (let i = 0; i < 3; i++) {
    const response = await call(key);
    expect([response.status, response.body.code]).toEqual([503, "unavailable"]);
    expect(response.headers.get("retry-after")).toBe("1");
    expect(rateLimitHeaders(response).slice(0, 2)).toEqual([1_000_000_000, 1_000_000_000]);
  }
  expect(lines).toHaveLength(3);
});

test("any 503: the database is unavailable and the key is not in the cache", async () => {
  faults = { findCredential: () => Promise.reject(new Unavailable("unavailable")) };
  const { status, headers, body } = await call(await newKey());
  expect([status, headers.get("retry-after")]).toEqual([503, "1"]);
  expect(body.message).toBe("The API key cannot be verified right now. Retry after 1 second.");
  expect(events()).toMatchObject([
    { event: "request.unavailable", where: "authentication", requestId: headers.get("x-request-id") },
  ]);
});

test("any 5xx: the event has the trace of a valid traceparent, beside the id of the request", async () => {
  const failures = [
    { clientStore: breaks },
    { decide: breaks },
    { decide: () => Promise.reject(new Overloaded("full")) },
    { findCredential: () => Promise.reject(new Unavailable("unavailable")) },
  ];
  const traceId = "4bf92f3577b34da6a3ce929d0e0e4736";
  for (const failure of failures) {
    faults = failure;
    // A key that was used before is in the cache.
    const headers = {
      ...bearer(await newKey()),
      traceparent: `00-${traceId}-00f067aa0ba902b7-01`,
    };
    await fetch(`${app.url}/pets`, { headers });
  }
  expect(events().map((event) => event["traceId"])).toEqual([traceId, traceId, traceId, traceId]);
});

test("any 503: a queue is full, which is an event of its own", async () => {
  faults = { decide: () => Promise.reject(new Overloaded("the queue is full")) };
  const { status, headers } = await call(await newKey());
  expect(status).toBe(503);
  expect(events()).toMatchObject([
    { event: "server.overloaded", reason: "the queue is full", requestId: headers.get("x-request-id") },
  ]);
});

test.each([
  [501, "GET / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip\r\n\r\n"],
  [505, "GET / HTTP/2.0\r\nHost: x\r\n\r\n"],
])("%d: HTTP that is not supported is an event with the id of the request", async (status, bytes) => {
  const text = await sendRaw(app.url, bytes);
  const requestId = /^x-request-id: (.*)$/im.exec(text)?.[1]?.trim();
  expect(events()).toMatchObject([{ event: "request.unsupported", level: "info", status, requestId }]);
});

test("a client that sends malformed HTTP causes no event", async () => {
  expect(await sendRaw(app.url, "nonsense\r\n\r\n")).toStartWith("HTTP/1.1 400 ");
  expect(lines).toEqual([]);
});

test("createPet 400: a body that takes longer than the timeout to arrive is read", async () => {
  const key = await newKey();
  const body = '{"name":"Rex"}';
  const head = `POST /v1/pets HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\nContent-Type: application/json\r\n`;
  const client = new RawConnection(Number(new URL(app.url).port));
  await client.write(`${head}Content-Length: ${body.length}\r\n\r\n${body.slice(0, 5)}`);
  // The timeout passes for a request that comes after the first bytes.
  expect((await call(key)).status).toBe(200);
  faults = { clientStore: () => new Promise<never>(() => {}) };
  expect((await call(key)).status).toBe(503);
  await client.write(body.slice(5));
  expect(await client.response()).toStartWith("HTTP/1.1 400 ");
  expect(events()).toMatchObject([{ event: "request.unavailable" }]);
  client.socket.end();
});
