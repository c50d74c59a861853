import { expect, test } from "bun:test";
import { hostname } from "node:os";
import { version } from "../../package.json" with { type: "json" };
import { NO_ACTIVITY } from "../../src/domain/servers.ts";
import { LATENCY_BUCKETS } from "../../src/observe/histogram.ts";
import { settingHandlers } from "../../src/operator/handlers/settings.ts";
import { serverHandlers, serverListHandlers } from "../../src/operator/handlers/servers.ts";
import { formatTime } from "../../src/text/formatting.ts";
import { TestClock } from "../test-clock.ts";
import { useAdminService } from "./admin-service.ts";

const service = await useAdminService();

test("listServers: a server on SQLite is a list of one", async () => {
  const figures = {
    requestsPerSecond: 0,
    requests: 0,
    rejections: 0,
    serverErrors: 0,
    connections: 0,
    p50: null,
    p99: null,
  };
  expect(await service.ok("/api/servers")).toEqual({
    items: [
      {
        id: expect.any(String),
        name: `${hostname()}:${new URL(service.url).port}`,
        state: "up",
        adminUrl: service.adminUrl,
        version,
        startedAt: "2026-11-15T12:00:00.000Z",
        seenAt: "2026-11-15T12:00:00.000Z",
        differing: [],
        clockAheadMs: null,
        ...figures,
      },
    ],
    total: figures,
  });
});

test("listServers: servers that were not heard of for more than 5 seconds, and lost ones last, without rates", async () => {
  const clock = new TestClock();
  const at = clock.now();
  const figures = { requests: 10, rejections: 3, serverErrors: 2, connections: 4, requestsPerSecond: 1.5 };
  const one = {
    ...NO_ACTIVITY,
    ...figures,
    id: "one",
    name: "web-1",
    port: 8080,
    version: "1",
    startedAt: at - 60_000,
    seenAt: at - 5_000,
    adminUrl: "http://web-1:8090",
    // A bucket of another release is left out.
    clockAheadMs: -2_001,
    latencies: [
      [0, 2],
      [LATENCY_BUCKETS, 9],
    ],
  };
  const {
    id: _id,
    port: _port,
    clockAheadMs: _aheadMs,
    ...two
  } = { ...one, seenAt: at - 5_001, adminUrl: null, version: "2" };
  const servers = { list: () => [one, { ...two, id: "two" }], lost: () => [{ ...two, id: "lost" }] };
  const { items, total } = await serverListHandlers({ clock, servers }).listServers();
  const view = (id: string, state: "up" | "unknown" | "lost") => {
    const isFirst = id === "one";
    return {
      id,
      name: isFirst ? "web-1:8080" : "web-1",
      state,
      adminUrl: isFirst ? "http://web-1:8090" : null,
      version: isFirst ? "1" : "2",
      startedAt: formatTime(at - 60_000),
      seenAt: formatTime(isFirst ? at - 5_000 : at - 5_001),
      differing: state === "lost" ? [] : [{ name: "version", value: isFirst ? "1" : "2" }],
      clockAheadMs: isFirst ? -2_001 : null,
      ...figures,
      p50: 0.0005,
      p99: 0.0005,
    };
  };
  const none = { requestsPerSecond: 0, connections: 0, p50: null, p99: null };
  expect(items).toEqual([view("one", "up"), view("two", "unknown"), { ...view("lost", "lost"), ...none }]);
  expect(total).toEqual({
    requests: 20,
    rejections: 6,
    serverErrors: 4,
    connections: 8,
    requestsPerSecond: 3,
    p50: 0.0005,
    p99: 0.0005,
  });
});

test.each([
  [true, 3, { state: "available", latencyMs: 3 }],
  [true, undefined, { state: "available", latencyMs: null }],
  [false, 3, { state: "unavailable", latencyMs: null }],
])(
  "getServer: what it depends on is available: %p, with a latency of %p ms",
  (isAvailable, latencyMs, state) => {
    const monitor = { engine: "PostgreSQL", isAvailable, latencyMs, waitsForStandby: true };
    const services = {
      environment: "staging",
      servers: { self: { version } },
      startedAt: 0,
      publicUrl: "https://api.example.com/v1",
      address: "127.0.0.1:8080",
      database: monitor,
      limiterMonitor: { ...monitor, engine: "PostgreSQL" },
      isDraining: () => true,
    };
    expect(serverHandlers(services as never).getServer()).toEqual({
      environment: "staging",
      version,
      runtime: `Bun ${Bun.version}`,
      startedAt: "1970-01-01T00:00:00.000Z",
      publicUrl: services.publicUrl,
      instance: { address: services.address, pid: process.pid },
      database: { kind: "PostgreSQL", waitsForStandby: true, ...state },
      rateLimiter: { kind: "PostgreSQL", ...state },
      draining: true,
    } as never);
  },
);

test("getSettings: what the machine or the system has decided instead, with what was given", async () => {
  const setting = (name: string, value: string | null, source: "default" | "flag") => ({
    name,
    variable: name,
    value,
    default: null,
    source,
    help: "help",
  });
  const shown = [
    setting("log-level", "info", "default"),
    setting("max-connections", "1000", "flag"),
    setting("max-connections", "1000", "default"),
    setting("max-connections", null, "flag"),
    setting("admin-address", "127.0.0.1:0", "flag"),
  ];
  const self = { id: "self", name: "web-1", version, startedAt: 0 };
  const settingsWith = async (list: readonly object[]) => {
    const services = {
      servers: { self, list: () => list },
      shownSettings: shown,
      valuesInEffect: { "max-connections": "500" },
    };
    return (await settingHandlers(services as never).getSettings()).items;
  };
  const changes = [{}, { value: "500", given: "1000" }, { value: "500" }, { value: "500" }];
  const expected: object[] = changes.map((change, i) => Object.assign({}, shown[i], change));
  const address = shown.at(-1) ?? expect.unreachable();
  const listening = { ...address, value: "127.0.0.1:8091", given: "127.0.0.1:0" };
  const own = { ...NO_ACTIVITY, ...self, adminUrl: "http://127.0.0.1:8091" };
  expect<object[]>(await settingsWith([own])).toEqual([...expected, listening]);
  expect<object[]>(await settingsWith([])).toEqual([...expected, address]);
});
