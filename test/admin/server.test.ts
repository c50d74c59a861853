import { afterAll, beforeAll, expect, test } from "bun:test";
import { type AdminService, startAdminService } from "./admin-service.ts";

let service: AdminService;
beforeAll(async () => void (service = await startAdminService()));
afterAll(() => service.stop());

test("getServer describes the server and its engines", async () => {
  const { host } = new URL(service.url);
  expect(await service.ok({ path: "/api/server" })).toEqual({
    environment: "production",
    version: "1.0.0",
    runtime: `Bun ${Bun.version}`,
    startedAt: "2026-11-15T12:00:00.000Z",
    publicUrl: service.url,
    instance: { address: host, pid: process.pid },
    database: { kind: "SQLite", state: "available", latencyMs: null },
    rateLimiter: { kind: "memory", state: "available", latencyMs: null },
    draining: false,
  });
});

test("/readyz lists its checks with ?verbose, and ?exclude leaves one out", async () => {
  expect((await service.admin({ path: "/livez", token: null })).text).toBe("ok\n");
  expect((await service.admin({ path: "/readyz", token: null })).text).toBe("ok\n");
  const verbose = await service.admin({ path: "/readyz?verbose", token: null });
  expect(verbose.text).toBe("[+]database ok\n[+]migrations ok\n[+]rate-limiter ok\n[+]draining ok\nok\n");
  const without = await service.admin({ path: "/readyz?verbose&exclude=rate-limiter", token: null });
  expect(without.text).not.toContain("rate-limiter");
});

test("/readyz is 503 while the server drains, and /livez stays 200", async () => {
  const draining = await startAdminService({}, { drainDelayMs: 1_000 });
  const stopped = draining.stop();
  const ready = await draining.admin({ path: "/readyz", token: null });
  expect(ready.status).toBe(503);
  expect(ready.text).toBe(
    "[+]database ok\n[+]migrations ok\n[+]rate-limiter ok\n[-]draining failed\nnot ready\n",
  );
  expect((await draining.admin({ path: "/livez", token: null })).status).toBe(200);
  expect(await draining.ok({ path: "/api/server" })).toMatchObject({ draining: true });
  await stopped;
});

test("/metrics is in Prometheus' text format, or in OpenMetrics for whoever prefers it", async () => {
  const text = await service.admin({ path: "/metrics" });
  expect(text.headers.get("content-type")).toBe("text/plain; version=0.0.4; charset=utf-8");
  const headers = { Accept: "application/openmetrics-text; version=1.0.0" };
  const open = await service.admin({ path: "/metrics", headers });
  expect(open.headers.get("content-type")).toStartWith("application/openmetrics-text; version=1.0.0");
  expect(open.text).toEndWith("# EOF\n");
});
