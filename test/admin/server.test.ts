import { expect, test } from "bun:test";
import { hostname } from "node:os";
import { version } from "../../package.json" with { type: "json" };
import { useAdminService } from "./admin-service.ts";

const service = await useAdminService();

test("listServers: a server without Valkey is a list of one", async () => {
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
        ...figures,
      },
    ],
    total: figures,
  });
});

test("/metrics is in OpenMetrics for whoever prefers it", async () => {
  const headers = { Accept: "application/openmetrics-text; version=1.0.0" };
  const open = await service.admin("/metrics", { headers });
  expect(open.headers.get("content-type")).toStartWith("application/openmetrics-text; version=1.0.0");
  expect(open.text).toEndWith("# EOF\n");
});
