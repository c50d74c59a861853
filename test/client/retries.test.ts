import { describe, expect, spyOn, test } from "bun:test";
import * as fc from "fast-check";
import * as client from "../../src/client/index.ts";
import { retryAfterSeconds } from "../../src/client/retry.ts";
import { finish, settle, useFakeTimers } from "../fake-timers.ts";
import { cutOff, json, NEW_PET, PET, problem, rejection, type Reply, scripted } from "./scripted.ts";

useFakeTimers();

const RETRY_AFTER_S = 7;
const UNREACHED_MS = 10_000;
/** What a request meets, and what the call rejects with if it is the last. */
const REPLIES = {
  "no response": [() => new TypeError("fetch failed"), "connection"],
  "nothing at all": [() => "never", "connection"],
  "a body that was cut off": [cutOff, "connection"],
  "JSON that was cut off": [
    () => json(201, PET.slice(0, -5), { "Content-Type": "application/json" }),
    "connection",
  ],
  "the first attempt in progress": [() => problem(409, "idempotency_conflict"), 409],
  "a proxy that waits": [() => json(408, ""), 408],
  "a limit": [() => problem(429, "rate_limited", { "Retry-After": `${RETRY_AFTER_S}` }), 429],
  "an error": [() => problem(500, "internal_error"), 500],
  "a proxy without a server": [() => json(502, "<html>"), 502],
  "an outage": [() => problem(503, "unavailable"), 503],
  "a proxy whose server is slow": [() => json(504, ""), 504],
} satisfies Record<string, readonly [() => Reply, end: unknown]>;
type ReplyName = keyof typeof REPLIES;
const NAMES = Object.keys(REPLIES) as ReplyName[];
/** What ends a call. */
const LAST = [201, 400, 401, 403, 404, 409, 410, 422] as const;

interface Settings {
  readonly maxRetries: number | undefined;
  readonly timeoutMs: number;
  readonly deadlineMs: number;
  readonly waitForRateLimit: boolean;
}

/** When requests are sent, and when and how the call ends. `chance` is what Math.random returns. */
function modelOf(replies: readonly ReplyName[], last: number, settings: Settings, chance: number) {
  const { timeoutMs, deadlineMs, maxRetries } = settings;
  const sentAt: number[] = [];
  let now = 0;
  let hasResponded = false;
  for (const reply of replies) {
    sentAt.push(now);
    const isLate = reply === "nothing at all" && now + timeoutMs >= deadlineMs;
    if (isLate) return { sentAt, end: "deadline", now: deadlineMs };
    if (reply === "nothing at all") now += timeoutMs;
    else hasResponded ||= reply !== "no response";
    const askedMs = reply === "a limit" ? RETRY_AFTER_S * 1_000 : 0;
    const leftMs = deadlineMs - now;
    const range = Math.min(8_000, 250 * 2 ** (sentAt.length - 1), leftMs - askedMs);
    const reachMs = hasResponded || maxRetries !== undefined ? Infinity : UNREACHED_MS - now;
    const waitMs = Math.min(askedMs + Math.max(1, Math.floor(chance * range)), reachMs);
    const retries = maxRetries ?? (hasResponded ? 10 : Infinity);
    if (sentAt.length > retries || reachMs <= 0 || waitMs >= leftMs)
      return { sentAt, end: REPLIES[reply][1], now };
    now += waitMs;
  }
  return { sentAt: [...sentAt, now], end: last, now };
}

function endOf(error: unknown): unknown {
  if (error instanceof client.ConnectionError) return "connection";
  if (!(error instanceof client.TimeoutError)) return Object(error).status;
  expect(error.cause).toBeInstanceOf(client.PetstoreError);
  return "deadline";
}

test("a call is sent again after a random wait that doubles, and after Retry-After, until a bound or the deadline", async () => {
  const settings = fc.record({
    maxRetries: fc.option(fc.integer({ min: 0, max: 12 }), { nil: undefined }),
    timeoutMs: fc.constantFrom(30, 15_000),
    deadlineMs: fc.constantFrom(41, 8_001, 20_001, 120_001, Infinity),
    waitForRateLimit: fc.boolean(),
  });
  const some = (names: readonly ReplyName[]) =>
    fc.array(fc.constantFrom(...names), { maxLength: 12, size: "max" });
  const replies = fc.oneof(some(NAMES), some(["no response", "nothing at all"]));
  const agrees = fc.asyncProperty(
    settings,
    fc.constantFrom(0.004, 0.5, 0.8),
    replies,
    fc.constantFrom(...LAST),
    async (settings, chance, names, last) => {
      const reply = last === 201 ? json(201, PET) : problem(last, "of_a_later_release");
      const startedAt = Date.now();
      const sentAt: number[] = [];
      const { petstore, sent, delays } = scripted([...names.map((name) => REPLIES[name][0]()), reply], {
        ...settings,
        onRequest: () => void sentAt.push(Date.now() - startedAt),
      });
      const random = spyOn(Math, "random").mockReturnValue(chance);
      const end = await finish(petstore.pets.create(NEW_PET).then(() => 201, endOf));
      random.mockRestore();
      const outcome = { sentAt, end, now: Date.now() - startedAt };
      expect<object>(outcome).toEqual(modelOf(names, last, settings, chance));
      expect(delays).toHaveLength(sent.length - 1);
      const [first, ...others] = new Set(sent.map(({ idempotencyKey }) => idempotencyKey));
      expect([first, others]).toEqual([expect.stringMatching(/^[0-9a-f]{32}$/), []]);
    },
  );
  await fc.assert(agrees, { numRuns: 300, seed: 7, endOnFailure: true });
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
