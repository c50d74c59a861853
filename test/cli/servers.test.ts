import { beforeAll, expect, test } from "bun:test";
import { hostname } from "node:os";
import type { Setting } from "../../src/operator/operations.ts";
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
