import { afterEach, beforeEach, expect, test } from "bun:test";
import { type App, serveOn } from "../../src/app.ts";
import { Unavailable } from "../../src/contract/errors.ts";
import { hashSecret, generateSecret } from "../../src/domain/api-keys.ts";
import type { Store } from "../../src/domain/ports.ts";
import { type Adapters, openAdapters } from "../../src/adapters.ts";
import { petJsonOf } from "../../src/http/pet-json.ts";
import { createLog } from "../../src/log.ts";
import { temporaryFolder } from "../../harness/cleanup.ts";
import { expectConforms } from "../conforms.ts";
import { configIn, NO_LIMITS, TestClock } from "../service.ts";

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

const log = createLog((line) => void lines.push(line));

/** The whole service, with engines that a test has broken. */
async function start(breakEngines: (engines: Adapters) => Adapters): Promise<string> {
  const config = configIn(folder);
  const engines = await openAdapters(config, clock, log);
  const secret = generateSecret("production");
  const draft = { name: "test", plan: "enterprise", limits: NO_LIMITS, createdAt: clock.now() } as const;
  await engines.keys.createKey(draft, hashSecret(secret));
  app = await serveOn(breakEngines(engines), config, { clock, log, requestTimeoutMs: 50 });
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
    body: JSON.parse(bodyText) as { code: string },
  };
}

function broken(fail: () => never | Promise<never>): Pick<Adapters, "store" | "petJson"> {
  const store: Store = {
    listPets: fail,
    getPet: fail,
    createPet: async () => fail(),
    listOrders: fail,
    placeOrder: async () => fail(),
    updateOrder: async () => fail(),
    close: async () => {},
  };
  return { store, petJson: petJsonOf(store) };
}

const OPERATIONS = [
  ["GET", "/pets"],
  ["GET", "/pets/1"],
  ["POST", "/pets"],
  ["GET", "/store/orders"],
  ["POST", "/store/orders"],
  ["PATCH", "/store/orders/1"],
] as const;

for (const [method, path] of OPERATIONS) {
  test(`${method} ${path} 500: a fault of ours tells the client nothing and the log everything`, async () => {
    const key = await start((engines) => ({
      ...engines,
      ...broken(() => {
        throw new Error("broken", { cause: SECRET_CAUSE });
      }),
    }));
    const { status, body } = await call(key, method, path);
    expect([status, body.code]).toEqual([500, "internal_error"]);
    expect(lines).toHaveLength(1);
    expect(lines[0]).toContain("error request failed");
    expect(lines[0]).toContain("hunter2");
  });

  test(`${method} ${path} 503: an engine that is away is said to be, with Retry-After`, async () => {
    const key = await start((engines) => ({
      ...engines,
      ...broken(() => {
        throw new Unavailable("away", { cause: SECRET_CAUSE, retryAfterSeconds: 3 });
      }),
    }));
    for (let i = 0; i < 5; i++) {
      const { status, headers, body } = await call(key, method, path);
      expect([status, body.code, headers.get("retry-after")]).toEqual([503, "unavailable", "3"]);
    }
    // Many requests fail for one reason: that is one line, not many.
    expect(lines).toHaveLength(1);
  });

  test(`${method} ${path} 503: work that never ends is not waited for for ever`, async () => {
    const key = await start((engines) => ({
      ...engines,
      ...broken(() => new Promise<never>(() => {})),
    }));
    const { status, body } = await call(key, method, path);
    expect([status, body.code]).toEqual([503, "unavailable"]);
  });
}

test("any 500: a rateLimiter that fails is a fault of ours, and the answer still carries the three headers", async () => {
  const key = await start((engines) => ({
    ...engines,
    rateLimiter: {
      ...engines.rateLimiter,
      close: () => engines.rateLimiter.close(),
      decide() {
        throw new Error("broken", { cause: SECRET_CAUSE });
      },
    },
  }));
  const { status, headers } = await call(key);
  expect(status).toBe(500);
  expect(headers.get("x-ratelimit-limit")).not.toBeNull();
  expect(lines).toHaveLength(1);
});

test("any 503: a key that was not seen before cannot be checked while its engine is away", async () => {
  const key = await start((engines) => ({
    ...engines,
    keys: new Proxy(engines.keys, {
      get(keys, name) {
        if (name === "findCredential") return () => Promise.reject(new Unavailable("away"));
        const method: unknown = Reflect.get(keys, name);
        return typeof method === "function" ? method.bind(keys) : method;
      },
    }),
  }));
  const { status, headers, body } = await call(key);
  expect([status, body.code, headers.get("retry-after")]).toEqual([503, "unavailable", "1"]);
});

test("a body that takes longer than an answer may is nobody's fault, and is waited for", async () => {
  const key = await start((engines) => engines);
  const body = '{"name":"Rex","categoryId":1}';
  const head = `POST /v1/pets HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\nContent-Type: application/json\r\n`;
  const { hostname, port } = new URL(app?.url ?? "");
  const answer = Promise.withResolvers<string>();
  const socket = await Bun.connect({
    hostname,
    port: Number(port),
    socket: { data: (_, bytes) => answer.resolve(bytes.toString()) },
  });
  socket.write(`${head}Content-Length: ${body.length}\r\n\r\n${body.slice(0, 5)}`);
  // Twice the deadline that this service has.
  await Bun.sleep(100);
  socket.write(body.slice(5));
  expect(await answer.promise).toStartWith("HTTP/1.1 201 ");
  expect(lines).toEqual([]);
  socket.end();
});
