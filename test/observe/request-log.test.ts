import { beforeEach, describe, expect, test } from "bun:test";
import type { Decision } from "../../src/domain/rate-limit.ts";
import type { Request, Response } from "../../src/http1/index.ts";
import { HeaderFields } from "../../src/http1/header-fields.ts";
import { type LoggedRequest, type RequestConditions, RequestLog } from "../../src/observe/request-log.ts";
import { RequestRecord } from "../../src/observe/request-record.ts";

const NOW = Date.parse("2026-11-16T12:00:00Z");
const SIZE = 1 << 20;

let now: number;
let log: RequestLog;

beforeEach(() => {
  now = NOW;
  log = new RequestLog({ maxBytes: SIZE, now: () => now });
});

function send(sent: Partial<LoggedRequest> = {}): void {
  const { requestId = "id", path = "/v1/pets", address: clientAddress = "192.0.2.1", status = 200 } = sent;
  const headers = HeaderFields.parse(sent.userAgent ? `User-Agent: ${sent.userAgent}\r\n` : "");
  const { method = "GET" } = sent;
  const record = new RequestRecord({ method, path, headers, clientAddress } as Request, requestId);
  record.decision = {} as Decision;
  record.durationMs = sent.durationMs ?? 1;
  record.operation = sent.operation ?? undefined;
  if (sent.keyId) record.authentication = { keyId: sent.keyId } as RequestRecord["authentication"];
  const error = {
    ...(sent.code && { errorCode: sent.code }),
    ...(sent.message && { errorMessage: sent.message }),
  };
  log.observe(record, { status: status as Response["status"], headerLines: "", body: "", ...error });
}

async function found(conditions: RequestConditions = {}, limit = 1_000_000): Promise<LoggedRequest[]> {
  return [...(await log.find(conditions, limit)).items];
}

const idsOf = (items: readonly LoggedRequest[]) => items.map(({ requestId }) => requestId);

test("a request is found with everything that is known of it", async () => {
  send({ operation: "listPets" });
  now++;
  const sent = {
    requestId: "mine",
    keyId: 7,
    path: "/v1/pets/9",
    operation: "getPet",
    status: 400,
    code: "invalid_parameter",
    message: "petId must be an integer.",
    durationMs: 2.5004,
    address: "192.0.2.1",
    userAgent: "shop/1 (x y)",
  } as const;
  send(sent);
  expect(log.since).toBe(NOW);
  const stamp = now * 1_024;
  const seen = [{ ...sent, stamp, method: "GET", durationMs: 2.5 }];
  expect(await found({}, 1)).toEqual(seen);
  // The bounds: a time is included, a duration is not.
  expect(await found({ from: stamp })).toEqual(seen);
  expect(await found({ slowerThanMs: 2.5004 })).toEqual([]);
});

test("a blank user agent is none, and a method of more than 20 characters is other", async () => {
  for (const userAgent of ["\xa0", "\xa0 \xa0", "\xa0x"]) send({ userAgent });
  expect((await found()).map(({ userAgent }) => userAgent)).toEqual(["\xa0x", null, null]);
  send({ method: "M".repeat(20) });
  send({ method: "M".repeat(21) });
  const methods = (await found({}, 2)).map(({ method }) => method);
  expect(methods).toEqual(["other", "M".repeat(20)]);
});

test("the newest come first; a page knows whether more follow, and where it ends", async () => {
  for (let i = 0; i < 5; i++) send({ requestId: `${i}` });
  const { items, hasMore } = await log.find({}, 2);
  expect([idsOf(items), hasMore]).toEqual([["4", "3"], true]);
  const rest = await log.find({ before: items[1]?.stamp ?? 0 }, 3);
  expect([idsOf(rest.items), rest.hasMore]).toEqual([["2", "1", "0"], false]);
});

test.each<[string, RequestConditions]>([
  ["key", { keyId: 7 }],
  ["status", { statuses: [429, 429] }],
  ["class of statuses", { statuses: [400, 499] }],
  ["code", { code: "rate_limited" }],
  ["operation", { operation: "createPet" }],
  ["address", { address: "2001:db8:0:0::/64" }],
  ["duration", { slowerThanMs: 99.5 }],
  ["request id", { requestId: "mine" }],
  ["time", { from: (NOW + 5) * 1_024, before: (NOW + 6) * 1_024 }],
  ["all of them", { keyId: 7, statuses: [429, 429], code: "rate_limited", operation: "createPet" }],
])("requests are found by their %s", async (_, conditions) => {
  send();
  now = NOW + 5;
  send({
    requestId: "mine",
    keyId: 7,
    status: 429,
    code: "rate_limited",
    operation: "createPet",
    address: "2001:db8:0:0::/64",
    durationMs: 100,
  });
  now = NOW + 10;
  send({ keyId: 77, status: 503, code: "unavailable", operation: "listPets", durationMs: 2 });
  expect(idsOf(await found(conditions))).toEqual(["mine"]);
});

test("a log without requests finds none, and neither do a code that none had and a key that does not exist", async () => {
  expect(await log.find({}, 10)).toEqual({ items: [], hasMore: false });
  expect(log.since).toBeUndefined();
  send();
  expect(await found({ code: "internal_error" })).toEqual([]);
  expect(await found({ keyId: 0 })).toEqual([]);
});

test("health checks and preflights, which no rate limit bounds, overwrite no request", async () => {
  const request = { method: "GET", path: "/healthz", headers: HeaderFields.parse("") } as Request;
  log.observe(new RequestRecord(request, "health"), { status: 503, headerLines: "", body: null });
  log.observe(new RequestRecord({ ...request, path: "/v1/pets" }, "preflight"), {
    status: 204,
    headerLines: "",
    body: null,
  });
  expect(await found()).toEqual([]);
});

test("no secret gets into the log: API keys and tokens in the path, the user agent and the request id", async () => {
  const secrets = ["pet_live_aB3dE5", "pet_test_aB3dE5", "pet_admin_a-B_3dE5"];
  for (const secret of secrets)
    send({ requestId: secret, path: `/${secret}/x`, userAgent: `a ${secret} ${"é".repeat(300)}` });
  const items = await found();
  expect(items.map(({ requestId, path }) => [requestId, path])).toEqual(
    ["pet_admin_…", "pet_test_…", "pet_live_…"].map((hidden) => [hidden, `/${hidden}/x`]),
  );
  expect(JSON.stringify(items)).not.toMatch(/aB3dE5|B_3dE5/);
  // Whoever has the id finds the request.
  expect(await found({ requestId: "pet_live_aB3dE5" })).toHaveLength(1);
});

describe("a full log", () => {
  test("keeps the newest in its memory, however long paths and user agents are", async () => {
    let sent = 0;
    for (let round = 0; round < 20; round++) {
      for (let i = 0; i < 1_037; i++) {
        const length = (i * 61) % 400;
        const text = "é".repeat(length);
        send({
          requestId: `${sent++}`.padEnd((i * 7) % 128, "x"),
          path: `/${text}`,
          userAgent: text,
          keyId: sent,
        });
      }
      expect(log.byteLength).toBeWithin(SIZE / 2, SIZE + 1);
      const items = await found();
      expect(items.length).toBeGreaterThan(50);
      // The entries have no gap, and each is whole.
      expect(items.map(({ keyId }) => keyId)).toEqual(items.map((_, i) => sent - i));
      expect(items.every(({ requestId, keyId }) => requestId.startsWith(`${(keyId ?? 0) - 1}`))).toBe(true);
      expect(
        items.every(({ path, userAgent }) => path.slice(1).startsWith((userAgent ?? "").slice(0, 199))),
      ).toBe(true);
    }
  });

  test("of short requests has more than 8,000 in a megabyte", async () => {
    for (let i = 0; i < 511; i++) send();
    expect(log.byteLength).toBe(0);
    for (let i = 0; i < 30_000; i++) send({ requestId: `f3b0aa11-${i}`, userAgent: "shop/2.1" });
    expect((await found()).length).toBeWithin(8_000, 9_000);
    expect(await found({ keyId: 1 })).toEqual([]);
  });

  test("is read while requests overwrite it: nothing is found twice or broken", async () => {
    let sent = 0;
    const sendMany = (count: number) => {
      for (let i = 0; i < count; i++)
        send({ requestId: `${sent}`, keyId: ++sent, userAgent: `agent-${sent}` });
    };
    sendMany(20_000);
    const reading = found({ requestId: "no such" });
    const all = found();
    const timer = setInterval(() => sendMany(3_000), 0);
    const items = await all;
    expect(sent).toBeGreaterThan(20_000);
    expect(await reading).toEqual([]);
    clearInterval(timer);
    const ids = items.map(({ keyId }) => keyId ?? 0);
    expect(ids).toEqual(ids.map((_, i) => (ids[0] ?? 0) - i));
    expect(items.every(({ keyId, userAgent }) => userAgent === `agent-${keyId}`)).toBe(true);
  });
});

test("times never descend, also when the clock is set back", async () => {
  send({ requestId: "a" });
  now -= 3_600_000;
  send({ requestId: "b" });
  expect((await found()).map(({ stamp }) => stamp - NOW * 1_024)).toEqual([1, 0]);
});
