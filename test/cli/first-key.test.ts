import { afterAll, expect, test, setDefaultTimeout } from "bun:test";
import { existsSync, mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { cleanUp, EXECUTABLE, petstore, temporaryDirectory } from "./cli.ts";
import { serve } from "./server-process.ts";

// Processes take long to start on a busy machine.
setDefaultTimeout(30_000);
afterAll(cleanUp);

/** Runs a server on a terminal of its own, until it says that it is serving. */
async function outputOnTerminal(data: string): Promise<string> {
  let output = "";
  const { promise: isServing, resolve } = Promise.withResolvers<void>();
  const child = Bun.spawn([EXECUTABLE, "serve", "--port", "0", "--data", data], {
    terminal: {
      cols: 200,
      data(_terminal, bytes) {
        output += new TextDecoder().decode(bytes);
        if (output.includes("[server.started]")) resolve();
      },
    },
  });
  await isServing;
  child.kill("SIGTERM");
  await child.exited;
  return output.replaceAll("\r\n", "\n");
}

test("on a terminal the first key is printed, and no file is written", async () => {
  const data = join(temporaryDirectory(), "data");
  const output = await outputOnTerminal(data);
  const [secret] = /pet_live_\w+/.exec(output) ?? [];
  const [, origin] = /^ {2}API +(\S+)\/v1$/m.exec(output) ?? [];
  expect(output).toContain(`Created the first API key (free plan, 60 requests per minute, 1,000 per day):

  ${secret}

This is the only time it is shown: Petstore stores only its hash. Try it in a browser or with curl:

  ${origin}/docs#try-it
  curl -i -H 'Authorization: Bearer ${secret}' ${origin}/v1/pets`);
  expect(existsSync(join(data, "production-first-key"))).toBeFalse();
  expect(output).toMatch(/^\S+Z info {2}the server accepts requests \[server\.started\] version=/m);
});

test("elsewhere only a file has the first key, and the printed command reads it", async () => {
  const data = join(temporaryDirectory(), "it's data");
  const { startMessage, stop, log } = await serve(data);
  const path = join(data, "production-first-key");
  expect(readFileSync(path, "utf8")).toMatch(/^pet_live_\w{36}\n$/);
  expect(statSync(path).mode & 0o777).toBe(0o600);
  const [command = ""] = /^ {2}curl .*$/m.exec(startMessage) ?? [];
  const curl = Bun.spawnSync(["bash", "-c", command.replace("curl -i", "curl -si")]);
  expect(curl.stdout.toString()).toStartWith("HTTP/1.1 200 OK");
  expect(await stop("SIGTERM")).toBe(0);
  const lines = await log();
  expect(JSON.parse(lines[0] ?? "")).toMatchObject({ level: "info", event: "key.first-created", file: path });
  expect(startMessage + lines.join()).not.toContain("pet_live_");
});

test("staging has a file of its own", async () => {
  const data = temporaryDirectory();
  const { secret, stop } = await serve(data, "--env", "staging");
  expect(secret).toStartWith("pet_test_");
  expect(existsSync(join(data, "staging-first-key"))).toBeTrue();
  expect(await stop("SIGTERM")).toBe(0);
});

test("a file or link of that name is replaced, and its target is left alone", async () => {
  const data = temporaryDirectory();
  const target = join(temporaryDirectory(), "target");
  writeFileSync(target, "precious", { mode: 0o644 });
  symlinkSync(target, join(data, "production-first-key"));
  const { secret, stop } = await serve(data);
  expect(secret).toStartWith("pet_live_");
  expect(readFileSync(target, "utf8")).toBe("precious");
  expect(await stop("SIGTERM")).toBe(0);
});

test("a first key that cannot be written is revoked", async () => {
  const data = temporaryDirectory();
  mkdirSync(join(data, "production-first-key"));
  const { code, err } = await petstore("serve", "--port", "0", "--data", data);
  expect(code).toBe(1);
  expect(err).toMatch(
    /^petstore: [^\n]+; nobody received the first key, so it is revoked; create another with petstore keys create\n$/,
  );
  const listed = await petstore("keys", "list", "--data", data, "--json");
  expect(JSON.parse(listed.out)).toMatchObject([{ state: "revoked" }]);
});
