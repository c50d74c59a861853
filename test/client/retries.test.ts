import { describe, expect, test } from "bun:test";
import * as client from "../../src/client/index.ts";
import { retryAfterSeconds, retryDelay } from "../../src/client/retry.ts";
import { advance, finish, settle, useFakeTimers } from "../fake-timers.ts";
import { cutOff, json, NEW_PET, PET, problem, rejection, type Reply, scripted } from "./scripted.ts";

useFakeTimers();

describe("a call is retried", () => {
  test.each<[string, Reply]>([
    ["after a network fault", new TypeError("fetch failed")],
    ["after 503", problem(503, "unavailable")],
    ["after 502 of a proxy", json(502, "<html>")],
    ["after 500", problem(500, "internal_error")],
    ["after 408 of a proxy", json(408, "")],
    ["after a body that was cut off", cutOff()],
    ["after JSON that was cut off", json(201, PET.slice(0, -5), { "Content-Type": "application/json" })],
    ["while its first attempt is in progress", problem(409, "idempotency_conflict")],
  ])("%s, with the same Idempotency-Key", async (_, reply) => {
    const { petstore, sent } = scripted([reply, json(201, PET)]);
    const { data, response } = await finish(petstore.pets.create(NEW_PET).withResponse());
    expect(data.id).toBe(1n);
    expect(response.attempts).toBe(2);
    expect(sent).toHaveLength(2);
    expect(sent[0]?.idempotencyKey).toMatch(/^[0-9a-f]{32}$/);
    expect(sent[1]?.idempotencyKey).toBe(sent[0]?.idempotencyKey ?? "none");
  });

  test.each([true, false])("after Retry-After (waitForRateLimit %p)", async (waitForRateLimit) => {
    const replies = [problem(429, "rate_limited", { "Retry-After": "1" }), json(201, PET)];
    const { petstore, sent, delays } = scripted(replies, { waitForRateLimit });
    const created = petstore.pets.create(NEW_PET);
    await advance(999);
    expect(sent).toHaveLength(1);
    await finish(created);
    expect(delays).toEqual([expect.any(Number)]);
    expect(delays[0]).toBeWithin(1000, 1250);
  });

  test.each([120_000, Infinity])("at most maxRetries times (deadlineMs %p)", async (deadlineMs) => {
    const fault = new TypeError("fetch failed");
    const { petstore, sent } = scripted([fault, fault, fault], { maxRetries: 2, deadlineMs });
    const error = await finish(rejection(petstore.pets.create(NEW_PET)));
    expect(error).toBeInstanceOf(client.ConnectionError);
    expect(error).toMatchObject({ cause: fault });
    expect(sent).toHaveLength(3);
  });
});

test.each([400, 401, 403, 404, 409, 410, 422])("%i is not retried", async (status) => {
  const { petstore, sent } = scripted([problem(status, "invalid_body")]);
  expect(await rejection(petstore.pets.create(NEW_PET))).toMatchObject({ status, code: "invalid_body" });
  expect(sent).toHaveLength(1);
});

describe("deadline", () => {
  test("a request without a response is retried after timeoutMs", async () => {
    const { petstore, sent } = scripted(["never", json(201, PET)], { timeoutMs: 30 });
    const created = petstore.pets.create(NEW_PET);
    await advance(29);
    expect(sent).toHaveLength(1);
    expect((await finish(created)).id).toBe(1n);
    expect(sent).toHaveLength(2);
  });

  test("a call that the deadline cuts off is a TimeoutError with its last error as cause", async () => {
    const { petstore } = scripted(["never"]);
    const error = await finish(rejection(petstore.pets.listPage({ deadlineMs: 40 })));
    expect(error).toBeInstanceOf(client.TimeoutError);
    expect(error).toHaveProperty("cause", expect.any(client.ConnectionError));
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
    const { petstore, sent } = scripted(["never"]);
    const created = rejection(petstore.pets.create(NEW_PET, { signal: controller.signal }));
    await settle();
    expect(sent).toHaveLength(1);
    controller.abort(reason);
    expect(await created).toBe(reason);
  });

  test.each([true, false])("while it waits for a retry (waitForRateLimit %p)", async (waitForRateLimit) => {
    const controller = new AbortController();
    const replies = [problem(429, "rate_limited", { "Retry-After": "30" })];
    const { petstore, delays } = scripted(replies, { waitForRateLimit });
    const created = rejection(petstore.pets.create(NEW_PET, { signal: controller.signal }));
    await settle();
    expect(delays).toHaveLength(1);
    controller.abort(reason);
    expect(await created).toBe(reason);
  });

  test("a create that is aborted has the Idempotency-Key that it sent; a GET has none", async () => {
    const { petstore, sent } = scripted(["never", "never", "never"], { waitForRateLimit: false });
    const { signal } = new AbortController();
    const calls = [
      petstore.pets.create(NEW_PET, { signal }),
      petstore.orders.place({ petId: 1 }, { signal, idempotencyKey: "mine" }),
      petstore.request("post", "/pets", { signal, body: NEW_PET }),
    ];
    for (const call of calls) call.catch(() => {});
    await settle();
    expect(calls.map(({ idempotencyKey }) => idempotencyKey)).toEqual(
      sent.map(({ idempotencyKey }) => idempotencyKey ?? "missing"),
    );
    expect(calls[1]?.idempotencyKey).toBe("mine");
    const get = petstore.pets.listPage({ signal });
    get.catch(() => {});
    expect(get.idempotencyKey).toBeUndefined();
  });
});

test("an update of an order is sent again after a lost response, with its If-Match", async () => {
  const order = json(200, '{"id":5,"petId":1,"status":"completed","createdAt":"2026-11-15"}');
  const { petstore, sent } = scripted([new TypeError("fetch failed"), order]);
  expect((await finish(petstore.orders.complete(5, { ifMatch: '"a"' }))).status).toBe("completed");
  const requests = sent.map(({ method, headers }) => [method, headers.get("If-Match")]);
  expect(requests).toEqual([
    ["PATCH", '"a"'],
    ["PATCH", '"a"'],
  ]);
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

test("a code of a later release is `other`; the body has it", async () => {
  const { petstore } = scripted([problem(400, "of_a_later_release")]);
  const error = await rejection(petstore.pets.create(NEW_PET));
  expect(error).toMatchObject({ code: "other", body: expect.stringContaining('"of_a_later_release"') });
});

test("Retry-After is seconds or a date", () => {
  const now = Date.parse("2026-11-15T12:00:00Z");
  expect(retryAfterSeconds("7", now)).toBe(7);
  expect(retryAfterSeconds("Sun, 15 Nov 2026 12:00:09 GMT", now)).toBe(9);
  expect(retryAfterSeconds("Sun, 15 Nov 2026 11:00:00 GMT", now)).toBe(0);
  expect(retryAfterSeconds("soon", now)).toBeUndefined();
  expect(retryAfterSeconds(null, now)).toBeUndefined();
});
