import { describe, expect, jest, spyOn, test } from "bun:test";
import * as client from "../../src/client/index.ts";
import { advance, finish, settle, useFakeTimers } from "../fake-timers.ts";
import { cutOff, json, NEW_PET, PET, problem, rejection, scripted } from "./scripted.ts";

useFakeTimers();

const HTML = "<!doctype html>".padEnd(2_000, "x");
const html = (status: number) => json(status, HTML, { "Content-Type": "text/html" });
const PETS_URL = "http://petstore.test/v1/pets";

const MOVED = "https://petstore.test/v1/pets";
const moved = (status: number) => json(status, "", { Location: MOVED });
const repeatedPage = () => json(200, `[${PET}]`, { Link: `<${PETS_URL}?cursor=abc>; rel="next"` });
const listPage = ({ pets }: client.Petstore) => pets.listPage();

test.each<[string, Response[], (petstore: client.Petstore) => Promise<unknown>, message: string]>([
  ["a page that is no array", [json(200, PET)], listPage, ""],
  ["a pet that is no object", [json(200, "[]")], ({ pets }) => pets.get(1), ""],
  ["a pet that is null", [json(200, "null")], ({ pets }) => pets.get(1), "whose JSON is no object."],
  ["a page without content", [new Response(null, { status: 204 })], listPage, "which is no JSON."],
  ["a redirect that a browser hides", [Response.error()], listPage, "redirects to another address:"],
  ["a redirect with status 302", [moved(302)], listPage, `redirects to ${MOVED}:`],
  ["a redirect with status 308", [moved(308)], listPage, `redirects to ${MOVED}:`],
  [
    "a list whose cursor comes again",
    [repeatedPage(), repeatedPage()],
    ({ pets }) => pets.list().toArray({ max: 1_000 }),
    "",
  ],
  [
    "HTML with status 200",
    [html(200)],
    ({ pets }) => pets.create(NEW_PET),
    `POST ${PETS_URL} responded with status 200 and text/html, which is no JSON.`,
  ],
])("%s is an InvalidResponseError, and no request is repeated", async (_, replies, call, message) => {
  const count = replies.length;
  const { petstore, sent } = scripted(replies);
  const error = await finish(rejection(call(petstore)));
  expect(error).toBeInstanceOf(client.InvalidResponseError);
  expect(error).toHaveProperty("message", expect.stringContaining(message));
  expect(sent).toHaveLength(count);
});

const noResponse = (cause: unknown) => new TypeError("fetch failed", { cause });
const withCode = (code: string, message = "") => Object.assign(new Error(message), { code });

describe("an address that has never responded", () => {
  test.each([
    ["connect ECONNREFUSED 127.0.0.1:9", new Error("connect ECONNREFUSED 127.0.0.1:9.")],
    ["ECONNRESET", withCode("ECONNRESET")],
    [
      "Client network socket disconnected before secure TLS connection was established",
      withCode(
        "ECONNRESET",
        "Client network socket disconnected before secure TLS connection was established",
      ),
    ],
    ["getaddrinfo EAI_AGAIN petstore.test", withCode("EAI_AGAIN", "getaddrinfo EAI_AGAIN petstore.test")],
    ["RangeError", new RangeError("")],
    ["fetch failed", "of another kind"],
  ])("is asked for ten seconds, and the message says why it failed: %s", async (reason, cause) => {
    const { petstore, sent } = scripted(Array.from({ length: 100 }, () => noResponse(cause)));
    const startedAt = Date.now();
    const error = await finish(rejection(petstore.pets.listPage()));
    expect(Date.now() - startedAt).toBe(10_000);
    expect(sent.length).toBeGreaterThan(3);
    expect(error).toBeInstanceOf(client.ConnectionError);
    expect(error).toHaveProperty("message", `No response from ${PETS_URL}: ${reason}.`);
  });

  test("is asked as often as maxRetries says, if it says something", async () => {
    const { petstore, sent } = scripted(
      Array.from({ length: 100 }, () => noResponse(withCode("ECONNREFUSED"))),
      { maxRetries: 12 },
    );
    await finish(rejection(petstore.pets.listPage()));
    expect(sent).toHaveLength(13);
  });

  test.each([
    "ENOTFOUND",
    "DEPTH_ZERO_SELF_SIGNED_CERT",
    "CERT_HAS_EXPIRED",
    "UNABLE_TO_VERIFY_LEAF_SIGNATURE",
    "ERR_TLS_CERT_ALTNAME_INVALID",
    "ERR_SSL_WRONG_VERSION_NUMBER",
    "EPROTO",
    "HPE_INVALID_CONSTANT",
    "Malformed_HTTP_Response",
    "dns error: failed to lookup address information: Name or service not known",
    "client error (Connect): invalid peer certificate: UnknownIssuer",
    "client error (Connect): received corrupt message of type InvalidContentType",
  ])("is asked once if no restart causes the failure: %s", async (reason) => {
    const cause = reason.includes(" ") ? new Error(reason) : withCode(reason);
    const { petstore, sent } = scripted([noResponse(cause)], { maxRetries: 5 });
    const error = await finish(rejection(petstore.pets.listPage()));
    expect(error).toHaveProperty("message", `No response from ${PETS_URL}: ${reason}.`);
    expect(sent).toHaveLength(1);
  });
});

test("an address that responded before is asked again whatever the failure is", async () => {
  const failures = Array.from({ length: 10 }, () => noResponse(withCode("ENOTFOUND")));
  const { petstore, sent } = scripted([json(200, "[]"), ...failures, json(200, "[]")]);
  await finish(petstore.pets.listPage());
  await finish(petstore.pets.listPage());
  expect(sent).toHaveLength(12);
});

test.each([
  ["of a page", ({ pets }: client.Petstore) => pets.listPage(), "Repeat the call."],
  [
    "of a create",
    ({ pets }: client.Petstore) => pets.create(NEW_PET),
    "Repeat the call with its idempotencyKey.",
  ],
])("a response %s that is cut off each time is a ConnectionError that says so", async (_, call, advice) => {
  const { petstore } = scripted([cutOff(), cutOff()], { maxRetries: 1 });
  const error = await finish(rejection(call(petstore)));
  expect(error).toBeInstanceOf(client.ConnectionError);
  expect(error).toHaveProperty("message", `The response from ${PETS_URL} was cut off: terminated. ${advice}`);
});

describe("a baseUrl that is not the URL of the API", () => {
  test.each(["nope", "localhost:8080/v1", "/v1"])("%s is rejected by the constructor", (baseUrl) => {
    const create = () => new client.Petstore({ key: "pet_live_x", baseUrl });
    expect(create).toThrow(`baseUrl must be a URL such as https://example.com/v1, not ${baseUrl}.`);
  });

  test.each<[string, string, Response, advice: string]>([
    [
      "the server has no such path",
      "",
      problem(404, "not_found"),
      " Set baseUrl to http://petstore.test/v1.",
    ],
    ["a proxy responds 404", "/api/", html(404), " Set baseUrl to http://petstore.test/api/v1."],
    ["a page responds", "", html(200), " Set baseUrl to http://petstore.test/v1."],
    ["the path has a version", "/v1", problem(404, "not_found"), ""],
    ["a proxy maps the path", "", problem(404, "order_not_found"), ""],
  ])("%s: the error says what to set", async (_, path, reply, advice) => {
    const { petstore } = scripted([reply], { baseUrl: `http://petstore.test${path}` });
    const error = await rejection(petstore.orders.get(1));
    expect(error).toHaveProperty(
      "message",
      expect.stringMatching(new RegExp(`[^.]\\.${RegExp.escape(advice)}$`)),
    );
  });
});

test("a header that cannot be sent is a TypeError at once", async () => {
  const { petstore, sent } = scripted([]);
  const call = petstore.pets.listPage({ headers: { "X-Request-Id": "a\nb" } });
  expect(await rejection(call)).toBeInstanceOf(TypeError);
  expect(sent).toEqual([]);
});

describe("every error says what a caller needs to go on", () => {
  test.each([
    ["an ApiError", [problem(422, "idempotency_key_reused")], 422],
    ["a ConnectionError", [cutOff(), cutOff()], 200],
    ["an InvalidResponseError", [html(201)], 201],
    ["a TimeoutError", [problem(503, "unavailable"), "never" as const], undefined],
  ])("%s has idempotencyKey, status and headers", async (_, replies, status) => {
    const { petstore } = scripted(replies, { maxRetries: 1, deadlineMs: 1_000 });
    const error = await finish(rejection(petstore.pets.create(NEW_PET, { idempotencyKey: "row-1" })));
    expect(error).toMatchObject({ idempotencyKey: "row-1", status });
    if (status !== undefined) expect(error).toHaveProperty("headers", expect.any(Headers));
  });

  test.each([
    '{"code":"of_a_proxy"}',
    '{"message":"of a proxy"}',
    '{"code":7,"message":"of a proxy"}',
    "null",
  ])("the error of a proxy, %s, has no code of the API", async (body) => {
    const { petstore } = scripted([json(400, body)]);
    const error = await finish(rejection(petstore.pets.create(NEW_PET)));
    expect(error).toBeInstanceOf(client.InvalidRequestError);
    expect(error).toMatchObject({ code: undefined, message: "The server responded with status 400.", body });
  });

  test.each([
    [400, "InvalidRequestError"],
    [401, "AuthenticationError"],
    [403, "PermissionError"],
    [404, "NotFoundError"],
    [409, "ConflictError"],
    [410, "NotFoundError"],
    [412, "ConflictError"],
    [422, "ConflictError"],
    [429, "RateLimitError"],
    [499, "InvalidRequestError"],
    [500, "ServerError"],
  ])("the class of an error with status %i is %s", async (status, name) => {
    const { petstore } = scripted([json(status, "")], { maxRetries: 0 });
    const error = await finish(rejection(petstore.pets.create(NEW_PET)));
    expect(error).toMatchObject({ name, message: `The server responded with status ${status}.` });
  });

  test.each([200, 413])("the body of a proxy's %i is there, from its start", async (status) => {
    const { petstore } = scripted([html(status)]);
    const error = await finish(rejection(petstore.pets.create(NEW_PET)));
    expect(error).toMatchObject({ status, body: HTML.slice(0, 1_000) });
  });
});

test.each(["pet_live_abc\n", "Bearer pet_live_abc", "sk_live_abc", "pet_live_YOUR_KEY"])(
  "the key %j is rejected by the constructor, without the key in the message",
  (key) => {
    const create = () => new client.Petstore({ key, baseUrl: "http://petstore.test/v1" });
    expect(create).toThrow("key or PETSTORE_KEY must be a pet_live_ or pet_test_ key.");
  },
);

test("without a key, the message says where it is looked for", () => {
  const before = process.env["PETSTORE_KEY"];
  delete process.env["PETSTORE_KEY"];
  const create = () => new client.Petstore({ baseUrl: "http://petstore.test/v1" });
  expect(create).toThrow("Set key or PETSTORE_KEY.");
  if (before !== undefined) process.env["PETSTORE_KEY"] = before;
});

describe("the deadline bounds the wait for the rate limit", () => {
  const exhausted = () =>
    json(200, "[]", {
      Date: new Date(Date.now()).toUTCString(),
      "X-RateLimit-Limit": "1",
      "X-RateLimit-Remaining": "0",
      "X-RateLimit-Reset": String(Math.ceil(Date.now() / 1000) + 60),
    });

  test("and onWait says once to each call how long it takes", async () => {
    const waits: client.WaitEvent[] = [];
    const replies = [exhausted(), json(200, "[]"), json(200, "[]")];
    const { petstore } = scripted(replies, { onWait: (event) => void waits.push(event) });
    await finish(petstore.pets.listPage());
    await finish(Promise.all([1, 2].map((limit) => petstore.pets.listPage({ limit }))));
    const waitMs = expect.any(Number);
    expect(waits).toEqual(
      [1, 2].map((limit) => ({ method: "GET", url: `${PETS_URL}?limit=${limit}`, attempt: 1, waitMs })),
    );
    expect(waits[0]?.waitMs).toBeWithin(58_000, 62_000);
  });

  test("a wait that is known to exceed it is a RateLimitError at once, without a request", async () => {
    const { petstore, sent } = scripted([exhausted()]);
    await finish(petstore.pets.listPage());
    const startedAt = Date.now();
    const call = petstore.pets.create(NEW_PET, { deadlineMs: 5_000, idempotencyKey: "mine" });
    const error = await rejection(call);
    expect(error).toBeInstanceOf(client.RateLimitError);
    expect(error).toMatchObject({ code: "rate_limited", status: 429, idempotencyKey: "mine" });
    expect(Object(error).retryAfter).toBeWithin(58, 62);
    expect(Object(error).message).toMatch(
      /^No request was sent: rate_limited for \d\d s, beyond the deadline\.$/,
    );
    expect(Date.now() - startedAt).toBe(0);
    expect(sent).toHaveLength(1);
  });

  test("so is a wait for the end of a ban, with the code of the ban", async () => {
    const headers = { ...Object.fromEntries(exhausted().headers), "Retry-After": "600" };
    const { petstore, sent } = scripted([json(200, "[]"), problem(429, "key_banned", headers)]);
    await petstore.pets.listPage();
    for (let call = 0; call < 2; call++) {
      const error = await rejection(petstore.pets.listPage({ deadlineMs: 5_000 }));
      expect(error).toBeInstanceOf(client.RateLimitError);
      expect(error).toMatchObject({ code: "key_banned", status: 429 });
    }
    expect(sent).toHaveLength(2);
  });

  test("and the random part of a wait ends no call: neither its own nor that of another call", async () => {
    const random = spyOn(Math, "random").mockReturnValue(0.999);
    const limited = () => problem(429, "rate_limited", { "Retry-After": "1" });
    const replies = [...Array.from({ length: 5 }, limited), json(200, "[]"), json(200, "[]")];
    const { petstore, sent, delays } = scripted(replies, { deadlineMs: Infinity });
    const first = petstore.pets.listPage();
    while (delays.length < 5) await advance(100);
    const startedAt = Date.now();
    const error = await finish(rejection(petstore.pets.listPage({ deadlineMs: 2_000 })));
    expect(error).toBeInstanceOf(client.TimeoutError);
    expect(Date.now() - startedAt).toBe(2_000);
    await finish(first);
    expect(delays.at(-1)).toBe(1_000 + 3_996);
    expect(sent).toHaveLength(6);

    const own = scripted([limited(), limited(), json(200, "[]")], { deadlineMs: 2_300 });
    await finish(own.petstore.pets.listPage());
    random.mockRestore();
    expect(own.delays).toEqual([1_249, 1_050]);
  });

  test("calls that wait learn of a longer wait", async () => {
    const day = {
      ...Object.fromEntries(exhausted().headers),
      "x-ratelimit-reset": String(Math.ceil(Date.now() / 1000) + 80_000),
      "Retry-After": "80000",
    };
    const { petstore, sent } = scripted([exhausted(), problem(429, "rate_limited", day)]);
    await finish(petstore.pets.listPage());
    const calls = [1, 2, 3].map((limit) => rejection(petstore.pets.listPage({ limit })));
    const startedAt = Date.now();
    for (const error of await finish(Promise.all(calls))) {
      expect(error).toBeInstanceOf(client.RateLimitError);
      expect(error).toHaveProperty("code", "rate_limited");
    }
    expect(Date.now() - startedAt).toBeLessThan(62_000);
    expect(sent).toHaveLength(2);
  });

  test("no timer is left when no call waits", async () => {
    const { petstore } = scripted([exhausted()]);
    await finish(petstore.pets.listPage());
    const before = jest.getTimerCount();
    await rejection(petstore.pets.listPage({ deadlineMs: 5_000 }));
    expect(jest.getTimerCount()).toBe(before);
    const controller = new AbortController();
    const { signal } = controller;
    const calls = [1, 2].map((limit) => rejection(petstore.pets.listPage({ limit, signal })));
    await settle();
    expect(jest.getTimerCount()).toBeGreaterThan(before);
    controller.abort();
    await Promise.all(calls);
    expect(jest.getTimerCount()).toBe(before);
  });

  test("of all requests of a call together", async () => {
    const replies = ["never" as const, json(200, "[]"), "never" as const, "never" as const];
    const { petstore } = scripted(replies, { timeoutMs: 3_000, maxRetries: 1 });
    const startedAt = Date.now();
    const ids = Array.from({ length: 150 }, (_, id) => id);
    await finish(rejection(petstore.pets.byIds(ids, { deadlineMs: 5_000 })));
    expect(Date.now() - startedAt).toBeLessThanOrEqual(5_000);
  });

  test("and of a Retry-After: one beyond it is the error at once", async () => {
    const { petstore } = scripted([problem(429, "key_banned", { "Retry-After": "600" })]);
    const error = await rejection(petstore.pets.listPage());
    expect(error).toBeInstanceOf(client.RateLimitError);
    expect(error).toMatchObject({ code: "key_banned", retryAfter: 600 });
  });

  test("a hook that throws makes its call fail, and the others go on", async () => {
    const { petstore, sent } = scripted([exhausted(), json(200, "[]")], {
      onWait() {
        if (isFirst) {
          isFirst = false;
          throw new Error("of the hook");
        }
      },
    });
    let isFirst = true;
    await finish(petstore.pets.listPage());
    const [failed, succeeded] = [rejection(petstore.pets.listPage()), petstore.pets.listPage()];
    expect(await failed).toHaveProperty("message", "of the hook");
    expect((await finish(succeeded)).items).toEqual([]);
    expect(sent).toHaveLength(2);
  });
});
