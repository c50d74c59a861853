import { afterEach, beforeEach, describe, expect, jest, spyOn, test } from "bun:test";
import { Petstore, type PetstoreOptions, TimeoutError } from "../../src/client/index.ts";
import { RequestQueue } from "../../src/client/request-queue.ts";
import { metadataOf } from "../../src/client/response.ts";
import { Random } from "../../trials/harness/random.ts";
import { advance, finish, settle, useFakeTimers } from "../fake-timers.ts";
import { rejection } from "./scripted.ts";

useFakeTimers();
/** The waits of clients and the times of responses are the same in each run. */
beforeEach(() => {
  const random = new Random(1);
  spyOn(Math, "random").mockImplementation(() => random.fraction());
});
afterEach(() => void spyOn(Math, "random").mockRestore());

const WINDOW_MS = 10_000;

/** Limits as the server does, and responds in any order. */
class LimitedServer {
  #opensUntil = 0;
  #used = 0;
  accepted = 0;
  rejected = 0;
  /** What each window has rejected. */
  windows: { rejected: number }[] = [];
  mostAtOnce = 0;
  #atOnce = 0;

  /** `clockErrorMs` is how far its clock is ahead of the client's. */
  constructor(
    private readonly limit: number,
    private readonly clockErrorMs = 0,
  ) {}

  readonly fetch = async (): Promise<Response> => {
    this.mostAtOnce = Math.max(this.mostAtOnce, ++this.#atOnce);
    const response = this.#respond();
    await new Promise((resolve) => setTimeout(resolve, Math.random() * 20));
    this.#atOnce--;
    return response;
  };

  #respond(): Response {
    const now = Date.now() + this.clockErrorMs;
    if (now >= this.#opensUntil) {
      this.#opensUntil = now + WINDOW_MS;
      this.#used = 0;
      this.windows.push({ rejected: 0 });
    }
    const isAccepted = this.#used < this.limit;
    const window = this.windows.at(-1);
    if (isAccepted) this.#used++;
    else if (window) window.rejected++;
    this[isAccepted ? "accepted" : "rejected"]++;
    const retryAfter = Math.ceil((this.#opensUntil - now) / 1000);
    return new Response("[]", {
      status: isAccepted ? 200 : 429,
      headers: {
        Date: new Date(now).toUTCString(),
        "X-RateLimit-Limit": String(this.limit),
        "X-RateLimit-Remaining": String(this.limit - this.#used),
        "X-RateLimit-Reset": String(Math.ceil(this.#opensUntil / 1000)),
        ...(!isAccepted && { "Retry-After": String(retryAfter) }),
      },
    });
  }

  client(options: Partial<PetstoreOptions> = {}): Petstore {
    const { fetch } = this;
    return new Petstore({ key: "pet_live_x", baseUrl: "http://petstore.test/v1", fetch, ...options });
  }
}

/** All at once. */
const listPages = (petstore: Petstore, count: number, signal?: AbortSignal) =>
  Promise.all(Array.from({ length: count }, () => petstore.pets.listPage({ signal })));

describe("calls that share a client", () => {
  test("wait for the next window instead of running into a 429", async () => {
    const server = new LimitedServer(20);
    const startedAt = Date.now();
    await finish(listPages(server.client(), 50));
    expect(server).toMatchObject({ accepted: 50, rejected: 0 });
    expect(Date.now() - startedAt).toBeWithin(2 * WINDOW_MS, 2 * WINDOW_MS + 4_000);
    expect(server.mostAtOnce).toBeGreaterThan(10);
  });

  test("all wait after one 429, so that other clients of the key cost few rejections", async () => {
    const server = new LimitedServer(20);
    await finish(Promise.all([listPages(server.client(), 30), listPages(server.client(), 30)]));
    expect(server.accepted).toBe(60);
    expect(server.rejected).toBeLessThan(40);
  });

  test("of three processes settle below the limit: after ten windows, most pass without a 429", async () => {
    const server = new LimitedServer(60);
    const clients = [1, 2, 3].map(() => server.client({ deadlineMs: Infinity, maxRetries: 1_000 }));
    await finish(Promise.all(clients.map((each) => listPages(each, 200))));
    const rejectedAtFirst = server.rejected;
    server.windows = [];
    await finish(Promise.all(clients.map((each) => listPages(each, 400))));
    expect(rejectedAtFirst).toBeLessThan(200);
    expect(server.rejected - rejectedAtFirst).toBeLessThan(40);
    const calm = server.windows.filter(({ rejected }) => rejected === 0);
    expect(calm.length).toBeGreaterThan(server.windows.length / 2);
    expect(server.accepted).toBe(1_800);
    expect(server.windows.length).toBeLessThan(1_200 / 50);
  });

  test("send three requests after a pause, not a burst, because other clients may have used up the limit", async () => {
    const server = new LimitedServer(20);
    const petstore = server.client();
    await finish(listPages(petstore, 1));
    await finish(listPages(server.client(), 19));
    await advance(1_001);
    await finish(listPages(petstore, 15));
    expect(server).toMatchObject({ accepted: 35, rejected: 3 });
  });

  test.each([-3_600_000, 3_600_000])(
    "wait as long as it takes if the clocks differ by %i ms",
    async (clockErrorMs) => {
      const server = new LimitedServer(10, clockErrorMs);
      const startedAt = Date.now();
      await finish(listPages(server.client(), 15));
      expect(Date.now() - startedAt).toBeWithin(WINDOW_MS, WINDOW_MS + 2_500);
      expect(server).toMatchObject({ accepted: 15, rejected: 0 });
    },
  );

  test("a call that waits can be aborted, and the others go on", async () => {
    const server = new LimitedServer(5);
    const petstore = server.client();
    await finish(listPages(petstore, 5));
    const controller = new AbortController();
    const aborted = listPages(petstore, 3, controller.signal).catch((error: unknown) => error);
    const patient = listPages(petstore, 3);
    const reason = new Error("the user left");
    await settle();
    controller.abort(reason);
    expect(await aborted).toBe(reason);
    await finish(patient);
    expect(server).toMatchObject({ accepted: 8, rejected: 0 });
  });
});

/** Responds when the test says so, without headers. */
function manualServer(options: Partial<PetstoreOptions> = {}) {
  const responses: ((status?: number) => void)[] = [];
  const urls: string[] = [];
  const fetch = (url: string) =>
    new Promise<Response>((resolve) => {
      urls.push(url);
      responses.push((status = 200) => resolve(new Response("[]", { status })));
    });
  const baseUrl = "http://petstore.test/v1";
  return { petstore: new Petstore({ key: "pet_live_x", baseUrl, fetch, ...options }), responses, urls };
}

describe("maxConcurrency", () => {
  test.each([true, false])("is 64 requests at once (waitForRateLimit %p)", async (waitForRateLimit) => {
    const server = new LimitedServer(1_000);
    await finish(listPages(server.client({ waitForRateLimit }), 300));
    expect(server).toMatchObject({ accepted: 300, rejected: 0, mostAtOnce: 64 });
  });

  test("the others wait in order, until they are aborted or their deadline passes", async () => {
    const { petstore, responses, urls } = manualServer({ maxConcurrency: 1 });
    const list = (limit: number, options: { signal?: AbortSignal; deadlineMs?: number } = {}) =>
      petstore.pets.listPage({ limit, ...options });
    const [first, aborted] = [list(1), new AbortController()];
    const ended = [rejection(list(2, { signal: aborted.signal })), rejection(list(3, { deadlineMs: 100 }))];
    const [fourth, fifth] = [list(4), list(5)];
    aborted.abort("no longer needed");
    expect(await rejection(list(6, { signal: AbortSignal.abort("too late") }))).toBe("too late");
    await advance(100);
    expect(await Promise.all(ended)).toEqual(["no longer needed", expect.any(TimeoutError)]);
    for (const call of [first, fourth, fifth]) {
      await settle();
      responses.shift()?.();
      await call;
    }
    expect(urls.map((url) => url.at(-1))).toEqual(["1", "4", "5"]);
  });

  test.each([0, Number.NaN])("%p is a TypeError", (maxConcurrency) => {
    expect(() => manualServer({ maxConcurrency })).toThrow("maxConcurrency must be at least 1.");
  });
});

/** A queue at the beginning of a second of the server, and what its requests learn. */
function queueOf() {
  const queue = new RequestQueue({ maxConcurrency: 64, waitForRateLimit: true });
  const now = Math.floor(Date.now() / 1_000) * 1_000;
  jest.setSystemTime(now);
  const acquire = () => queue.acquire(new AbortController().signal, () => {});
  const headers = { Date: new Date(now).toUTCString() };
  return {
    queue,
    /** Sends a request, whose response says how many are left until the window closes. */
    async learn(remaining: number, closesInMs: number): Promise<void> {
      await acquire();
      const rateLimit = { limit: 1_000, remaining, resetAt: new Date(now + closesInMs) };
      queue.release({ ...metadataOf(new Response("", { headers }), 1), rateLimit });
    },
    /** How many of nine requests are sent at once. */
    async startedAtOnce(): Promise<number> {
      let started = 0;
      for (let call = 0; call < 9; call++) void acquire().then(() => started++);
      await settle();
      return started;
    },
  };
}

test.each([
  // One more at once after each round of successes.
  [1, 1_000, 60_001, 2],
  [2, 1_000, 60_001, 3],
  [6, 1_000, 60_001, 4],
  // Half of what is left, and of a short window less than its last request.
  [9, 5, 60_001, 3],
  [9, 5, 60_000, 2],
])(
  "after a 429 and %i successes, with %i requests left for %i ms, %i are sent at once",
  async (successes, remaining, closesInMs, expected) => {
    const { queue, learn, startedAtOnce } = queueOf();
    queue.pause(0, 0);
    for (let success = 0; success < successes; success++) await learn(remaining, closesInMs);
    expect(await startedAtOnce()).toBe(expected);
  },
);

test("a window that is used up holds requests back, whatever another one has left", async () => {
  const { learn, startedAtOnce } = queueOf();
  await learn(50, 30_000);
  await learn(0, 80_000_000);
  expect(await startedAtOnce()).toBe(0);
});

test.each([
  [200, 30],
  [503, 1],
])(
  "after a response with status %i and without rate limit headers, %i requests are sent at once",
  async (status, atOnce) => {
    const { petstore, responses } = manualServer({ maxRetries: 0 });
    const first = listPages(petstore, 1).catch(() => {});
    await settle();
    responses.shift()?.(status);
    await first;
    const others = listPages(petstore, 30);
    await settle();
    expect(responses).toHaveLength(atOnce);
    for (let sent = 0; sent < responses.length; sent++) {
      responses[sent]?.();
      await settle();
    }
    await others;
  },
);
