import { beforeAll, expect, test } from "bun:test";
import { hostname } from "node:os";
import type { ServerList, Setting } from "../../src/operator/operations.ts";
import { maxConnectionsWithin } from "../../src/http1/connection-limits.ts";
import { cleanUpAfterAll, failure, InProcessCli, type InProcessServer } from "./cli.ts";

cleanUpAfterAll();

const cli = new InProcessCli();
const run = (line: string) => cli.run(line);
let server: InProcessServer;
beforeAll(async () => {
  server = await cli.serve(["--max-connections", "1000000"]);
});

test("servers list has one row, this server", async () => {
  const { out } = await run("servers list");
  const [header, ...rows] = out.trimEnd().split("\n");
  expect(header).toMatch(/^NAME +STATE +ADMIN URL +VERSION +STARTED +REQ\/S /);
  expect(rows).toHaveLength(1);
  expect(rows[0]).toStartWith(`${hostname()}:${new URL(server.url).port}  up `);
  expect(rows[0]).toContain(` ${new URL(server.adminUrl).origin} `);
});

test("servers list: the figures of each server and of all, what differs, and who is lost", async () => {
  const { items, total } = await cli.json<ServerList>("servers list");
  const at = "2026-11-15T12:00:00.500Z";
  const version = "1.3.0";
  const shared = { ...items[0], version, startedAt: at, seenAt: at, adminUrl: null };
  const figures = { requestsPerSecond: 12.34, requests: 12_345, rejections: 1_000, p50: 9.99, p99: 10.4 };
  const differing = ["cors-origin", "version"].map((name) => ({ name, value: "a" }));
  const web = { ...shared, ...figures, name: "web-1:80", state: "up", differing, clockAheadMs: -3_600_123 };
  const lost = {
    ...shared,
    name: "web-2:80",
    state: "lost",
    requestsPerSecond: 0,
    requests: 0,
    rejections: 0,
    p50: null,
    p99: null,
    differing: [],
  };
  using fake = Bun.serve({
    port: 0,
    fetch: () => Response.json({ items: [web, lost], total: { ...total, ...figures } }),
  });
  const variables = { PETSTORE_TOKEN: `pstok_${"a".repeat(32)}` };
  expect(await cli.run(`servers list --server ${fake.url.origin}`, variables)).toEqual({
    code: 0,
    out: `NAME      STATE  ADMIN URL  VERSION  STARTED               REQ/S  REQUESTS  REJECTED  P50 MS  P99 MS  DIFFERS IN
web-1:80  up     -          1.3.0    2026-11-15T12:00:00Z   12.3    12,345     1,000    9.99      10  cors-origin, version
web-2:80  lost   -          1.3.0    2026-11-15T12:00:00Z    0.0         0         0       -       -  -
all       -      -          -        -                      12.3    12,345     1,000    9.99      10  -
web-1:80: its clock is 3,600 s behind that of PostgreSQL; synchronize both with NTP.
web-2:80 was last heard of at ${at}, and did not stop in order. If it was taken away, it is listed for an hour.
`,
    err: "",
  });
});

test("settings have their values in effect, and what was set", async () => {
  const possible = maxConnectionsWithin(1_000_000);
  const { out } = await run("settings");
  // It has no flag.
  expect(out).toMatch(/^PETSTORE_WEBHOOK_SECRET +- +default$/m);
  const { port, host } = new URL(server.url);
  const row = (name: string) => out.split("\n").find((line) => line.startsWith(`--${name} `));
  expect(row("port")).toMatch(new RegExp(`^--port +${port} \\(set to 0\\) +flag$`));
  expect(row("public-url")).toMatch(new RegExp(`^--public-url +http://${host}/v1 +default$`));
  if (possible < 1_000_000)
    expect(row("max-connections")).toMatch(new RegExp(` ${possible} \\(set to 1000000\\) +flag$`));
  else expect(row("max-connections")).toMatch(/ 1000000 +flag$/);
  const items: Setting[] = JSON.parse((await run("settings --json")).out);
  expect(items.find(({ name }) => name === "port")).toMatchObject({ value: port, given: "0" });
  expect(items.find(({ name }) => name === "log-level")).not.toHaveProperty("given");
});

test("without a running server, both say so", async () => {
  const other = new InProcessCli();
  expect(await other.out("servers list")).toStartWith("No server is running on production (data: ");
  const message = `no server runs in production (data: `;
  expect(await other.run("settings")).toEqual(failure(expect.stringContaining(message)));
});
