import { expect, test } from "bun:test";
import { DEFAULT_POLICY } from "../../src/domain/policy.ts";
import type { PageJson } from "../../src/domain/pages.ts";
import { charge, type Decision, decisionOf, newQuota, peek } from "../../src/domain/rate-limit.ts";
import type { Request } from "../../src/http1/index.ts";
import { createLog } from "../../src/observe/log.ts";
import { createEndpoints } from "../../src/petstore/handlers.ts";
import { PETSTORE_API } from "../../src/petstore/operations.ts";
import { PublicApp } from "../../src/public/public-app.ts";
import { TestClock } from "../test-clock.ts";

const LIMITS = { perMinute: 10, perDay: 100 };
const PAGE: PageJson = { json: '[{"id":1}]', last: 1n, hasMore: false };

function requestFor(method: string, path: string, query = ""): Request {
  const headers = { get: () => null } as never;
  return {
    method,
    path: `/v1${path}`,
    query,
    headers,
    remoteAddress: "",
    clientAddress: "",
    body: () => undefined,
    markAuthenticated() {},
  };
}

/** A service whose limiter decides when the test says so, and has seen `used` requests. */
function open({ used = 0, read = async () => PAGE }: { used?: number; read?: () => Promise<PageJson> } = {}) {
  const clock = new TestClock();
  const known = newQuota();
  for (let i = 0; i < used; i++) charge(known, LIMITS, clock.time);
  const { promise: deciding, resolve: decide, reject: fail } = Promise.withResolvers<Decision>();
  const reads: string[] = [];
  const lines: string[] = [];
  const unused = () => {
    throw new Error("not part of these tests");
  };
  const petJson = {
    batch: {},
    list: () => {
      reads.push("list");
      return read();
    },
    get: async (id: unknown) => {
      reads.push(`get ${String(id)}`);
      return undefined;
    },
  };
  const app = new PublicApp({
    api: PETSTORE_API,
    endpoints: createEndpoints({
      petJson,
      clientStore: {
        createPet: unused,
        placeOrder: unused,
        updateOrder: unused,
        getOrder: unused,
        listOrders: unused,
        close: async () => {},
      },
      keys: { getKey: unused },
      clock,
      baseUrl: "",
    }),
    clock,
    staticRouteAt: () => undefined,
    log: createLog({ format: "json", write: (line) => lines.push(line) }),
    authenticator: { authenticate: () => ({ keyId: 1, plan: "free", access: "write", limits: LIMITS }) },
    rateLimiter: {
      decide: () => deciding,
      peek: () => peek(structuredClone(known), LIMITS, clock.time),
    },
    policy: { current: DEFAULT_POLICY },
    whenCurrent: () => undefined,
  });
  /** The decision after so many requests, one of them on another server. */
  const decided = (requests: number) => {
    const quota = newQuota();
    let outcome: ReturnType<typeof charge> = "allowed";
    for (let i = 0; i < requests; i++) outcome = charge(quota, LIMITS, clock.time);
    return decisionOf(outcome, quota, LIMITS, clock.time);
  };
  return { app, reads, lines, allow: () => decide(decided(7)), reject: () => decide(decided(11)), fail };
}

const textOf = (response: object) => Bun.inspect(response, { depth: 5 });

test("a list is read while the limiter decides, and its response has the decision", async () => {
  const { app, reads, allow } = open();
  const responding = app.handle(requestFor("GET", "/pets"));
  await Bun.sleep(0);
  expect(reads).toEqual(["list"]);
  allow();
  const response = await responding;
  expect(reads).toEqual(["list"]);
  expect(response).toMatchObject({ status: 200 });
  expect(textOf(response)).toContain("X-RateLimit-Remaining: 3");
});

test.each(["a page", "an error", "a rejection of the query"])(
  "a request that is rejected shows nothing of %s that was read meanwhile",
  async (what) => {
    const read = what === "an error" ? () => Promise.reject(new Error("secret of the store")) : undefined;
    const { app, reads, lines, reject } = open(read && { read });
    const responding = app.handle(requestFor("GET", "/pets", what.endsWith("query") ? "limit=x" : ""));
    await Bun.sleep(0);
    reject();
    const response = await responding;
    expect(reads).toHaveLength(what.endsWith("query") ? 0 : 1);
    expect(response).toMatchObject({ status: 429 });
    expect(textOf(response)).not.toMatch(/"id"|limit must|secret/);
    expect(lines).toEqual([]);
  },
);

test("a list whose decision fails is 500, and its read is not shown", async () => {
  const { app, fail } = open();
  const responding = app.handle(requestFor("GET", "/pets"));
  await Bun.sleep(0);
  fail(new Error("no decision"));
  const response = await responding;
  expect(response).toMatchObject({ status: 500 });
  expect(textOf(response)).not.toContain('"id"');
});

test.each([
  ["a key that is near its limit", "GET", "/pets", 10],
  ["a response that depends on the key", "GET", "/key", 0],
  ["an operation that few requests share", "GET", "/pets/7", 0],
  ["a write", "POST", "/pets", 0],
  ["a request without a body in its response", "HEAD", "/pets", 0],
])("the decision comes first for %s", async (_, method, path, used) => {
  const { app, reads, reject } = open({ used });
  const responding = app.handle(requestFor(method, path));
  await Bun.sleep(0);
  reject();
  expect(await responding).toMatchObject({ status: 429 });
  expect(reads).toEqual([]);
});
