import { afterEach, describe, expect, jest, test } from "bun:test";
import { type ReadinessChecks, readinessChecks, readinessOf } from "../../src/operator/readiness.ts";
import { settle } from "../fake-timers.ts";
import { startAdminService } from "./admin-service.ts";

afterEach(() => void jest.useRealTimers());

test("/readyz is 503 while the server drains, and /livez stays 200", async () => {
  const draining = await startAdminService({}, { drainDelayMs: 1_000 });
  jest.useFakeTimers();
  const stopped = draining.stop();
  const ready = await draining.admin("/readyz", { token: null });
  expect(ready.status).toBe(503);
  expect(ready.text).toBe(
    "[+]database ok\n[+]disk ok\n[+]migrations ok\n[+]rate-limiter ok\n[-]draining failed\nnot ready\n",
  );
  expect((await draining.admin("/livez", { token: null })).status).toBe(200);
  expect(await draining.ok("/api/server")).toMatchObject({ draining: true });
  jest.advanceTimersByTime(1_000);
  jest.useRealTimers();
  await stopped;
});

describe("a check of /readyz", () => {
  const ready = (checks: ReadinessChecks, query = "") => readinessOf(checks)({ query });
  const stuck = () => new Promise<boolean>(() => {});

  test("that throws, rejects or is false makes the server not ready, and is named", async () => {
    const { status, body } = await ready({
      fine: () => true,
      throws: () => {
        throw new Error("gone");
      },
      rejects: () => Promise.reject(new Error("gone")),
      false: async () => false,
    });
    expect(status).toBe(503);
    expect(body).toBe("[+]fine ok\n[-]throws failed\n[-]rejects failed\n[-]false failed\nnot ready\n");
  });

  test("that never ends is given up after 0.8 seconds, before a probe of a second is", async () => {
    jest.useFakeTimers();
    const response = ready({ stuck, fine: () => true });
    await settle();
    jest.advanceTimersByTime(800);
    const { status, body } = await response;
    expect({ status, body }).toEqual({ status: 503, body: "[-]stuck failed\n[+]fine ok\nnot ready\n" });
  });

  test("is shared by requests at the same time, and one that never ends is begun anew", async () => {
    jest.useFakeTimers();
    let begun = 0;
    const shared = readinessOf({ database: () => (begun++, stuck()) });
    const requests = Array.from({ length: 1_000 }, () => shared({ query: "" }));
    jest.advanceTimersByTime(800);
    const statuses = await Promise.all(requests);
    expect(new Set(statuses.map(({ status }) => status))).toEqual(new Set([503]));
    expect(begun).toBe(1);
    void shared({ query: "" });
    expect(begun).toBe(2);
  });

  test("that is excluded is not run", async () => {
    const { status, body } = await ready({ fine: () => true, gone: () => false }, "exclude=gone");
    expect({ status, body }).toEqual({ status: 200, body: "ok\n" });
  });
});

test.each([
  ["[+]database ok", {}],
  ["[+]database ok: reads; writes wait for a synchronous standby", { database: { waitsForStandby: true } }],
  ["[+]database ok: reads; writes fail or wait for the disk", { database: { isAvailable: false } }],
  ["[-]database failed", { operatorPetStore: { getPet: () => Promise.reject(new Error("gone")) } }],
  ["[+]disk ok", {}],
  ["[+]disk ok", { freeBytes: () => 1_048_576 }],
  ["[-]disk failed", { freeBytes: () => 1_048_575 }],
  ["[+]migrations ok", {}],
  ["[+]rate-limiter ok", {}],
  ["[-]rate-limiter failed", { limiterMonitor: { isAvailable: false } }],
  ["[+]draining ok", {}],
  ["[-]draining failed", { isDraining: () => true }],
])("a server checks what it needs: %s", async (line, services) => {
  const checks = readinessChecks({
    operatorPetStore: { getPet: async () => undefined },
    database: { waitsForStandby: false, isAvailable: true },
    limiterMonitor: { isAvailable: true },
    isDraining: () => false,
    ...services,
  } as never);
  const { status, body } = await readinessOf(checks)({ query: "verbose" });
  const lines = body.split("\n");
  expect(lines).toContain(line);
  expect([status, lines.at(-2)]).toEqual(line.startsWith("[+]") ? [200, "ok"] : [503, "not ready"]);
});
