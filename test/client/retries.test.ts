import { describe, expect, test } from "bun:test";
import * as client from "@petstore/client";
import { retryAfterSeconds, retryDelay } from "../../src/client/retry.js";
import { rejection } from "./rejection.ts";

const PET = '{"id":1,"name":"Rex","categoryId":7}';
const NEW_PET = { name: "Rex", categoryId: 7 };

interface Sent {
  readonly method: string;
  readonly idempotencyKey: string | null;
}

type Reply = Response | Error | "never";
const json = (status: number, body: string, headers: Record<string, string> = {}) =>
  new Response(body, { status, headers });
const problem = (status: number, code: string, headers: Record<string, string> = {}) =>
  json(status, JSON.stringify({ code, message: `${code}.`, status }), headers);

/** A client whose requests get these replies, in this order. */
function scripted(replies: Reply[], options: Partial<client.PetstoreOptions> = {}) {
  const sent: Sent[] = [];
  const delays: number[] = [];
  const petstore = new client.Petstore({
    key: "pet_live_x",
    baseUrl: "http://petstore.test/v1",
    onRetry: ({ delayMs }) => void delays.push(delayMs),
    ...options,
    fetch: async (_url, { method = "", headers, signal }) => {
      sent.push({ method, idempotencyKey: new Headers(headers).get("Idempotency-Key") });
      const reply = replies.shift();
      if (reply instanceof Response) return reply;
      if (reply === "never")
        return new Promise((_, reject) => signal?.addEventListener("abort", () => reject(signal.reason)));
      throw reply ?? new Error("more requests than replies");
    },
  });
  return { petstore, sent, delays };
}

describe("a call is retried", () => {
  test.each<[string, Reply]>([
    ["after a network fault", new TypeError("fetch failed")],
    ["after 503", problem(503, "unavailable")],
    ["after 502 of a proxy", json(502, "<html>")],
    ["after a body that was cut off", json(201, PET.slice(0, 20))],
    ["while its first attempt is in progress", problem(409, "idempotency_conflict")],
  ])("%s, with the same Idempotency-Key", async (_, reply) => {
    const { petstore, sent } = scripted([reply, json(201, PET)]);
    const { data, response } = await petstore.pets.create(NEW_PET).withResponse();
    expect(data.id).toBe(1n);
    expect(response.attempts).toBe(2);
    expect(sent).toHaveLength(2);
    expect(sent[0]?.idempotencyKey).toMatch(/^[0-9a-f]{32}$/);
    expect(sent[1]).toEqual(sent[0] ?? { method: "", idempotencyKey: null });
  });

  test("after Retry-After, with and without waiting for the rate limit", async () => {
    for (const waitForRateLimit of [true, false]) {
      const replies = [problem(429, "rate_limited", { "Retry-After": "1" }), json(201, PET)];
      const { petstore, delays } = scripted(replies, { waitForRateLimit });
      const startedAt = performance.now();
      await petstore.pets.create(NEW_PET);
      expect(performance.now() - startedAt).toBeGreaterThanOrEqual(990);
      expect(delays).toHaveLength(1);
      expect(delays[0]).toBeGreaterThanOrEqual(1000);
      expect(delays[0]).toBeLessThan(1250);
    }
  });

  test("at most maxRetries times", async () => {
    const fault = new TypeError("fetch failed");
    const { petstore, sent } = scripted([fault, fault, fault], { maxRetries: 2 });
    const error = await rejection(petstore.pets.create(NEW_PET));
    expect(error).toBeInstanceOf(client.ConnectionError);
    expect(error).toMatchObject({ cause: fault });
    expect(sent).toHaveLength(3);
  });
});

test.each([400, 401, 403, 404, 409, 410, 422, 500])("%i is not retried", async (status) => {
  const { petstore, sent } = scripted([problem(status, "some_code")]);
  expect(await rejection(petstore.pets.create(NEW_PET))).toMatchObject({ status, code: "some_code" });
  expect(sent).toHaveLength(1);
});

describe("deadline", () => {
  test("a request without a response is retried after timeoutMs", async () => {
    const { petstore, sent } = scripted(["never", json(201, PET)], { timeoutMs: 30 });
    expect((await petstore.pets.create(NEW_PET)).id).toBe(1n);
    expect(sent).toHaveLength(2);
  });

  test("a call that the deadline cuts off is a TimeoutError with its last error as cause", async () => {
    const { petstore } = scripted(["never"]);
    const error = await rejection(petstore.pets.listPage({ deadlineMs: 40 }));
    expect(error).toBeInstanceOf(client.TimeoutError);
    expect(error).toHaveProperty("cause", expect.any(client.ConnectionError));
  });

  test("a Retry-After beyond it is the error at once", async () => {
    const { petstore, sent } = scripted([problem(503, "unavailable", { "Retry-After": "3600" })]);
    const error = await rejection(petstore.pets.listPage());
    expect(error).toBeInstanceOf(client.ServerError);
    expect(error).toMatchObject({ retryAfter: 3600 });
    expect(sent).toHaveLength(1);
  });
});

describe("an AbortSignal ends a call with its reason", () => {
  const reason = new Error("the user left");

  test("before it starts", async () => {
    const { petstore, sent } = scripted([]);
    const signal = AbortSignal.abort(reason);
    expect(await rejection(petstore.pets.create(NEW_PET, { signal }))).toBe(reason);
    expect(sent).toEqual([]);
  });

  test("during a request", async () => {
    const controller = new AbortController();
    const { petstore } = scripted(["never"], { onRequest: () => setTimeout(() => controller.abort(reason)) });
    expect(await rejection(petstore.pets.create(NEW_PET, { signal: controller.signal }))).toBe(reason);
  });

  test.each([true, false])("while it waits for a retry (waitForRateLimit %p)", async (waitForRateLimit) => {
    const controller = new AbortController();
    const { petstore } = scripted([problem(429, "rate_limited", { "Retry-After": "30" })], {
      waitForRateLimit,
      onRetry: () => setTimeout(() => controller.abort(reason)),
    });
    expect(await rejection(petstore.pets.create(NEW_PET, { signal: controller.signal }))).toBe(reason);
  });
});

describe("an order whose closing lost its response", () => {
  const order = (status: string) =>
    json(200, `{"id":5,"petId":1,"status":"${status}","createdAt":"2026-11-15"}`);
  const lost = () => [new TypeError("fetch failed"), problem(409, "order_closed")];

  test("is returned if it is closed as asked", async () => {
    const { petstore, sent } = scripted([...lost(), order("completed")]);
    expect((await petstore.orders.complete(5)).status).toBe("completed");
    expect(sent.map(({ method }) => method)).toEqual(["PATCH", "PATCH", "GET"]);
  });

  test("is a ConflictError if somebody else closed it otherwise", async () => {
    const { petstore } = scripted([...lost(), order("cancelled")]);
    expect(await rejection(petstore.orders.complete(5))).toBeInstanceOf(client.ConflictError);
  });
});

test("the delay doubles up to 8 seconds, with full jitter", () => {
  const largest = (attempt: number) => Math.max(...Array.from({ length: 2_000 }, () => retryDelay(attempt)));
  for (const [attempt, bound] of [
    [1, 250],
    [2, 500],
    [5, 4_000],
    [6, 8_000],
    [40, 8_000],
  ] as const) {
    expect(largest(attempt)).toBeLessThan(bound);
    expect(largest(attempt)).toBeGreaterThan(bound * 0.9);
  }
});

test("Retry-After is seconds or a date", () => {
  const now = Date.parse("2026-11-15T12:00:00Z");
  expect(retryAfterSeconds("7", now)).toBe(7);
  expect(retryAfterSeconds("Sun, 15 Nov 2026 12:00:09 GMT", now)).toBe(9);
  expect(retryAfterSeconds("Sun, 15 Nov 2026 11:00:00 GMT", now)).toBe(0);
  expect(retryAfterSeconds("soon", now)).toBeUndefined();
  expect(retryAfterSeconds(null, now)).toBeUndefined();
});
