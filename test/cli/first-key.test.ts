import { expect, test } from "bun:test";
import { existsSync, mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { cleanUpAfterAll, InProcessCli, temporaryDirectory } from "./cli.ts";

cleanUpAfterAll();

test("on a terminal the first key is printed, and no file is written", async () => {
  const cli = new InProcessCli();
  cli.isTerminal = true;
  const { startMessage, url, stop } = await cli.serve();
  const [secret] = /pet_live_\w+/.exec(startMessage) ?? [];
  const created = "Created the first API key (free plan, 60 requests per minute, 1,000 per day):";
  expect(startMessage).toContain(`${created}\n\n  ${secret}\n\nThis is the only time it is shown: `);
  expect(startMessage).toEndWith(`\n  curl -i ${url}/pets -H "Authorization: Bearer ${secret}"\n\n`);
  expect(existsSync(join(cli.dataDir, "production-first-key"))).toBeFalse();
  await stop();
});

/** In place of the programs: `cat` with what a shell has, and a `curl` that prints its arguments. */
const PROGRAMS = `cat() { read -r line < "$1"; printf '%s\\n' "$line"; }; curl() { printf '%s\\n' "$@"; };`;

test("elsewhere only a file has the first key, and the printed command reads it", async () => {
  const cli = new InProcessCli();
  const data = join(cli.dataDir, "it's data");
  const { startMessage, secret, url, stop, lines } = await cli.serve(["--data", data]);
  const path = join(data, "production-first-key");
  expect(readFileSync(path, "utf8")).toMatch(/^pet_live_\w{36}\n$/);
  expect(statSync(path).mode & 0o777).toBe(0o600);
  const [command = ""] = /^ {2}curl .*$/m.exec(startMessage) ?? [];
  const { stdout } = Bun.spawnSync(["sh", "-c", PROGRAMS + command]);
  expect(stdout.toString()).toBe(`-i\n${url}/pets\n-H\nAuthorization: Bearer ${secret}\n`);
  await stop();
  expect(JSON.parse(lines[0] ?? "")).toMatchObject({ level: "info", event: "key.first-created", file: path });
  expect(startMessage + lines.join()).not.toContain("pet_live_");
});

test("a file or link of that name is replaced, and its target is left alone", async () => {
  const cli = new InProcessCli();
  const target = join(temporaryDirectory(), "target");
  writeFileSync(target, "precious", { mode: 0o644 });
  mkdirSync(cli.dataDir);
  symlinkSync(target, join(cli.dataDir, "production-first-key"));
  const { secret, stop } = await cli.serve();
  expect(secret).toStartWith("pet_live_");
  expect(readFileSync(target, "utf8")).toBe("precious");
  await stop();
});

const NOBODY = "; nobody received the first key, so it is revoked; create another with petstore keys create";

test("a first key that cannot be written is revoked", async () => {
  const cli = new InProcessCli();
  mkdirSync(join(cli.dataDir, "production-first-key"), { recursive: true });
  const { code, err } = await cli.run("serve --port 0");
  expect(code).toBe(1);
  expect(err).toEndWith(NOBODY);
  expect(await cli.json("keys list")).toMatchObject([{ name: "first key", state: "revoked" }]);
});

test("a first key whose message cannot be printed is revoked, and its file removed", async () => {
  const cli = new InProcessCli();
  const full = Object.assign(new Error("ENOSPC: raw"), { code: "ENOSPC" });
  const { code, err } = await cli.run("serve --port 0", {}, { print: () => Promise.reject(full) });
  expect({ code, err }).toEqual({ code: 1, err: `no space is left on the device${NOBODY}` });
  expect(existsSync(join(cli.dataDir, "production-first-key"))).toBeFalse();
  expect(await cli.json("keys list")).toMatchObject([{ name: "first key", state: "revoked" }]);
});
