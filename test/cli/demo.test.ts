import { afterEach, beforeEach, expect, spyOn, test } from "bun:test";
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import type { Key } from "../../src/operator/operations.ts";
import { freePort } from "../../trials/harness/server.ts";
import { cleanUpAfterAll, InProcessCli, cliDirectory } from "./cli.ts";

cleanUpAfterAll();

/** The directory for temporary files, empty at first. */
let temporary: string;
const variables = { ...process.env };
beforeEach(() => void (temporary = cliDirectory()));
afterEach(() => {
  delete process.env["TMPDIR"];
  delete process.env["PETSTORE_FREE_LIMITS"];
  Object.assign(process.env, variables);
});

test("a newcomer sees keys of every plan, limits and a ban; the demo touches no other data and leaves nothing behind", async () => {
  const cli = new InProcessCli();
  const settings = { PETSTORE_FREE_LIMITS: "1000000/1000000" };
  Object.assign(process.env, settings, { TMPDIR: temporary });
  // Ten seconds pass within one.
  const { setTimeout } = globalThis;
  const sooner = (run: () => void, ms = 0) => setTimeout(run, ms / 10);
  const timers = spyOn(globalThis, "setTimeout").mockImplementation(Object.assign(sooner, setTimeout));
  const seconds = setInterval(() => cli.clock.advance(100), 10);

  const { message, lines, stop } = await cli.start("demo", settings);
  const [, url = ""] = /^ {2}API +(\S+)$/m.exec(message) ?? [];
  const [, secret = ""] = /Bearer (pet_live_\w+)/.exec(message) ?? [];
  const response = await fetch(`${url}/pets?limit=100`, { headers: { Authorization: `Bearer ${secret}` } });
  expect([response.status, Object(await response.json()).length]).toEqual([200, 100]);

  while (!lines.some((line) => line.includes('"event":"key.banned"'))) await Bun.sleep(5);
  clearInterval(seconds);
  timers.mockRestore();

  const [, nextCode = ""] = /^ {2}petstore (admin-url .*)$/m.exec(message) ?? [];
  expect(await cli.out(nextCode)).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/\?code=[\da-f]{40}\n$/);
  const [directory = ""] = readdirSync(temporary);
  const list = () => cli.json<Key[]>("keys", "list", "--data", join(temporary, directory));
  const isBanned = ({ state }: Key) => state === "banned";
  let keys = await list();
  // The server saves its usage now and then.
  for (; !keys.some(isBanned); keys = await list()) await Bun.sleep(20);
  expect(keys.filter(isBanned).map(({ name }) => name)).toEqual(["Forgotten script"]);
  expect(new Set(keys.map(({ plan }) => plan))).toEqual(new Set(["free", "pro", "business", "enterprise"]));

  expect((await stop()).code).toBe(0);
  expect(readdirSync(temporary)).toEqual([]);
  expect(existsSync(cli.dataDir)).toBeFalse();
});

test("the demo listens where --port and --admin-address, or their variables, say", async () => {
  process.env["TMPDIR"] = temporary;
  const [port, adminPort] = [freePort(), freePort()];
  const variables = { PETSTORE_ADMIN_ADDRESS: `127.0.0.1:${adminPort}` };
  const { message, stop } = await new InProcessCli().start(`demo --port ${port}`, variables);
  expect(message).toContain(`http://127.0.0.1:${port}/v1`);
  expect(message).toContain(`http://127.0.0.1:${adminPort}/`);
  expect((await stop()).code).toBe(0);
});
