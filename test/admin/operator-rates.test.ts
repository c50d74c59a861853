import { expect, spyOn, test } from "bun:test";
import { callServer } from "../../src/cli/calls/remote-server.ts";
import { OPERATOR_RATE } from "../../src/operator/operator-rates.ts";
import { ADMIN_OPERATIONS, type AdminOperation } from "../../src/operator/operations.ts";
import { scheduler } from "../../src/runtime/scheduler.ts";
import { sendOnce } from "../../trials/harness/http-connection.ts";
import { bearer } from "../bearer.ts";
import { sessionOf, useAdminService } from "./admin-service.ts";

const service = await useAdminService({}, {}, OPERATOR_RATE);

/** A body without `Content-Length`. */
const chunked = (text: string) =>
  new ReadableStream({
    async start(controller) {
      await Bun.sleep(1);
      controller.enqueue(text);
      controller.close();
    },
  });

let names = 0;
async function newToken(role = "viewer"): Promise<{ id: number; token: string }> {
  service.clock.advance(10_000);
  const body = { name: `operator-${++names}`, role };
  const { operator, token } = await service.ok("POST /api/operators", { body });
  return { id: Number(Object(operator).id), token: String(token) };
}
const send = (path: string, token: string) => service.admin(path, { token });
const statuses = async (count: number, path: string, token: string) => {
  const all: Awaited<ReturnType<typeof send>>[] = [];
  while (all.length < count)
    all.push(...(await Promise.all(Array.from({ length: 10 }, () => send(path, token)))));
  return { ok: all.filter(({ status }) => status === 200).length, last: all.at(-1) };
};

test("an operator may send 200 requests at once and 50 a second, and another operator as many", async () => {
  const [{ token }, other] = [await newToken(), await newToken()];
  const { ok, last } = await statuses(260, "/api/server", token);
  expect(ok).toBe(200);
  const message = "Too many requests of this operator at once. Retry after 1 second.";
  expect(last).toMatchObject({ status: 429, json: { code: "too_many_requests", message } });
  expect(last?.headers.get("retry-after")).toBe("1");
  expect((await statuses(10, "/api/server", other.token)).ok).toBe(10);
  service.clock.advance(1_000);
  expect((await statuses(60, "/api/server", token)).ok).toBe(50);
  service.clock.advance(60_000);
  expect((await statuses(210, "/api/server", token)).ok).toBe(200);
});

test("the token, its sessions, signing in, /metrics and the OpenAPI document share the rate", async () => {
  const { id, token } = await newToken();
  const signIn = () => service.signIn({ token });
  const session = { token: null, headers: { ...sessionOf(await signIn()), Origin: service.adminUrl } };
  expect((await statuses(200, "/api/server", token)).ok).toBe(199);
  const limited = { status: 429, json: { code: "too_many_requests" } };
  for (const path of ["/metrics", "/api/openapi.json", "/api/keys", "/api/nothing"])
    expect(await send(path, token)).toMatchObject(limited);
  expect(await service.admin("/api/server", session)).toMatchObject(limited);
  expect(await signIn()).toMatchObject(limited);
  // Another operator can still end it.
  await service.ok(`POST /api/operators/${id}/revoke`);
  expect((await send("/api/server", token)).status).toBe(401);
});

test("a request that is rejected for its rate has done nothing", async () => {
  const { token } = await newToken("admin");
  const { ok } = await statuses(200, "/api/server", token);
  expect(ok).toBe(200);
  const body = { name: "never", plan: "free" };
  expect((await service.admin("POST /api/keys", { token, body })).status).toBe(429);
  service.clock.advance(1_000);
  expect(await service.ok("/api/keys?search=never")).toMatchObject({ items: [] });
});

test("what takes long counts as several", async () => {
  const costs = Object.entries<AdminOperation>(ADMIN_OPERATIONS).flatMap(([id, { cost }]) =>
    cost === undefined ? [] : [[id, cost]],
  );
  expect(Object.fromEntries(costs)).toEqual({
    getOverview: 2,
    listKeys: 5,
    listBans: 2,
    getKeyUsage: 2,
    getUsage: 30,
    listRequests: 2,
    listAudit: 2,
    listPets: 3,
    listOrders: 2,
  });
  const { token } = await newToken();
  expect((await statuses(50, "/api/keys?limit=500", token)).ok).toBe(40);
});

test("each 4 KiB of a body count as one more request, and a body of unknown length as the longest", async () => {
  const { token } = await newToken("support");
  const size = 64 * 1_024;
  const bodyOf = (bytes: number) => `{"secret":"${"x".repeat(bytes - 13)}"}`;
  const headers = { ...bearer(token), "Content-Type": "application/json" };
  const countPassed = async (count: number, body: () => string | ReadableStream) => {
    const find = () => fetch(`${service.adminUrl}/api/keys/find`, { method: "POST", headers, body: body() });
    let passed = 0;
    for (let sent = 0; sent < count; sent += 10) {
      const responses = await Promise.all(Array.from({ length: 10 }, find));
      passed += responses.filter(({ status }) => status !== 429).length;
    }
    return passed;
  };
  // 17 of 200 each, and then 17 of 50 a second.
  expect(await countPassed(20, () => bodyOf(size))).toBe(11);
  service.clock.advance(1_000);
  expect(await countPassed(10, () => bodyOf(size))).toBe(3);
  service.clock.advance(60_000);
  expect(await countPassed(20, () => chunked(bodyOf(200)))).toBe(11);
  service.clock.advance(60_000);
  expect(await countPassed(120, () => bodyOf(4_096))).toBe(100);
  service.clock.advance(60_000);
  expect(await countPassed(220, () => bodyOf(4_095))).toBe(200);
  // A body that is too large for any operation is rejected for its size, not for ever for its rate.
  service.clock.advance(60_000);
  const head = ["POST /api/keys/find HTTP/1.1", "Host: localhost", `Authorization: Bearer ${token}`];
  const lines = [...head, "Content-Type: application/json", "Content-Length: 9999999999"];
  const { status } = await sendOnce(Number(new URL(service.adminUrl).port), `${lines.join("\r\n")}\r\n\r\n`);
  expect(status).toBe(413);
});

test("a command waits and sends its request again, so 10,000 keys and more are listed", async () => {
  const { token } = await newToken();
  using sleep = spyOn(scheduler, "sleep");
  // The server delays its rejections.
  sleep.mockImplementation(async (ms) => void (ms >= 1_000 && service.clock.advance(ms)));
  const remote = { server: service.adminUrl, token };
  // 10,000 keys are 20 pages.
  for (let page = 0; page < 20; page++) await callServer(remote, "listKeys", { query: { limit: 500 } });
  expect(sleep).not.toHaveBeenCalled();
  for (let page = 0; page < 80; page++) await callServer(remote, "listKeys", { query: { limit: 500 } });
  const waits = sleep.mock.calls.flat().filter((ms) => ms >= 1_000);
  expect(waits.length).toBeGreaterThan(3);
  expect(new Set(waits)).toEqual(new Set([1_000]));
});

test("the text of /metrics is reused for a second", async () => {
  const { token } = await newToken("metrics");
  const scrape = async () => (await service.admin("/metrics", { token })).text;
  service.clock.advance(1_000);
  const first = await scrape();
  await service.call({ path: "/pets" });
  service.clock.advance(999);
  expect(await scrape()).toBe(first);
  service.clock.advance(1);
  expect(await scrape()).not.toBe(first);
});
