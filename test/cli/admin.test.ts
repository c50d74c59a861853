import { afterAll, describe, expect, test, setDefaultTimeout } from "bun:test";
import { existsSync, readFileSync, renameSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { freePort } from "../../harness/ports.ts";
import { cleanUp, EXECUTABLE, petstore, spawnPetstore, temporaryDirectory } from "./cli.ts";
import { serve, type ServerProcess, started } from "./server-process.ts";

// Processes take long to start on a busy machine.
setDefaultTimeout(30_000);
afterAll(cleanUp);

const ANY_PORT = ["--admin-address", "127.0.0.1:0"];
const TOKEN = "a-token-of-the-operators";

const get = (server: ServerProcess, path: string, token: string, headers: Record<string, string> = {}) =>
  fetch(server.adminUrl + path, { headers: { Authorization: `Bearer ${token}`, ...headers } });
const status = async (server: ServerProcess, token: string) => (await get(server, "/api/keys", token)).status;

/** Repeats a request until the response has this status, and returns the milliseconds that took. */
async function untilStatus(server: ServerProcess, token: string, expected: number): Promise<number> {
  const since = performance.now();
  while ((await status(server, token)) !== expected) await Bun.sleep(10);
  return performance.now() - since;
}

describe("the admin token", () => {
  test("is made at the first start, kept for its owner alone, and used again", async () => {
    const data = join(temporaryDirectory(), "data");
    const first = await serve(data, ...ANY_PORT);
    const file = join(data, "production-admin-token");
    const token = readFileSync(file, "utf8").trim();
    expect(token).toMatch(/^pet_admin_[\w-]{43}$/);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(first.startMessage).toContain(`  Admin        ${first.adminUrl} (token in ${file})\n`);
    expect(await status(first, token)).toBe(200);
    expect(await first.stop("SIGTERM")).toBe(0);
    expect(first.startMessage + (await first.log()).join("\n")).not.toContain("pet_admin_");

    const second = await serve(data, ...ANY_PORT);
    expect(await status(second, token)).toBe(200);
    expect(await second.stop("SIGTERM")).toBe(0);
  });

  test("on a terminal the URL has the token", async () => {
    const data = join(temporaryDirectory(), "data");
    let output = "";
    const { promise: isServing, resolve } = Promise.withResolvers<void>();
    const child = Bun.spawn([EXECUTABLE, "serve", "--port", "0", "--data", data, ...ANY_PORT], {
      terminal: {
        cols: 200,
        data(_terminal, bytes) {
          output += new TextDecoder().decode(bytes);
          if (output.includes("\n  Rate limits ")) resolve();
        },
      },
    });
    await isServing;
    const token = readFileSync(join(data, "production-admin-token"), "utf8").trim();
    expect(output).toMatch(new RegExp(`  Admin +http://127\\.0\\.0\\.1:\\d+/\\?token=${token}\r?\n`));
    child.kill("SIGTERM");
    await child.exited;
  });

  test("of a variable is used, and no file is made", async () => {
    const data = temporaryDirectory();
    const variables = { PETSTORE_ADMIN_TOKEN: TOKEN };
    const server = await started(
      spawnPetstore(["serve", "--port", "0", "--data", data, ...ANY_PORT], { variables }),
    );
    expect(server.startMessage).toContain(`  Admin        ${server.adminUrl}\n`);
    expect(await status(server, TOKEN)).toBe(200);
    expect(existsSync(join(data, "production-admin-token"))).toBeFalse();
    const { items } = Object(await (await get(server, "/api/settings", TOKEN)).json());
    const setting = (name: string) => items.find((item: { name: string }) => item.name === name);
    expect(setting("admin-token")).toMatchObject({ value: "…", source: "variable" });
    expect(setting("data")).toMatchObject({ value: data, source: "flag", default: "./data" });
    expect(setting("ban-length")).toMatchObject({
      value: "5m",
      source: "default",
      variable: "PETSTORE_BAN_LENGTH",
    });
    expect(await server.stop("SIGTERM")).toBe(0);
    expect((await server.log()).join("\n")).not.toContain(TOKEN);
  });

  test("of a file is read again when the file is replaced, and the source is the env file", async () => {
    const folder = temporaryDirectory();
    const file = join(folder, "token");
    writeFileSync(file, `${TOKEN}\n`);
    writeFileSync(join(folder, "env"), `PETSTORE_ADMIN_TOKEN_FILE=${file}\n`);
    const server = await serve(temporaryDirectory(), ...ANY_PORT, "--env-file", join(folder, "env"));
    expect(await status(server, TOKEN)).toBe(200);
    const { items } = Object(await (await get(server, "/api/settings", TOKEN)).json());
    expect(items).toContainEqual(
      expect.objectContaining({ name: "admin-token", value: "…", source: "env file" }),
    );
    writeFileSync(`${file}.new`, "the-next-token-of-the-operators\n");
    renameSync(`${file}.new`, file);
    expect(await untilStatus(server, "the-next-token-of-the-operators", 200)).toBeLessThan(1_000);
    expect(await status(server, TOKEN)).toBe(401);
    expect(await server.stop("SIGTERM")).toBe(0);
  });
});

describe("admin-token roll", () => {
  test("a running server takes the new token within a second, and every session ends", async () => {
    const data = temporaryDirectory();
    const server = await serve(data, ...ANY_PORT);
    const file = join(data, "production-admin-token");
    const old = readFileSync(file, "utf8").trim();
    const session = await fetch(`${server.adminUrl}/api/session`, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ token: old }),
    });
    const Cookie = (session.headers.get("set-cookie") ?? "").split(";")[0] ?? "";
    const withCookie = () => fetch(`${server.adminUrl}/api/keys`, { headers: { Cookie } });
    expect((await withCookie()).status).toBe(200);

    const { code, out } = await petstore("admin-token", "roll", "--data", data);
    expect({ code, out }).toEqual({
      code: 0,
      out: `Replaced the admin token in ${file}. A running server takes it within a second, and everybody is signed out.\nSign in again with the URL that petstore admin-url prints.\n`,
    });
    const next = readFileSync(file, "utf8").trim();
    expect(next).not.toBe(old);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(await untilStatus(server, next, 200)).toBeLessThan(1_000);
    expect([await status(server, old), (await withCookie()).status]).toEqual([401, 401]);
    const { items } = Object(await (await get(server, "/api/audit?action=admin.token-rolled", next)).json());
    expect(items).toMatchObject([{ actor: { kind: "command line" } }]);
    expect(await server.stop("SIGTERM")).toBe(0);
  });

  test("a token of a variable is replaced there", async () => {
    const { code, err } = await petstore(
      "admin-token",
      "roll",
      "--admin-token",
      TOKEN,
      "--data",
      temporaryDirectory(),
    );
    expect({ code, err }).toEqual({
      code: 1,
      err: "petstore: the admin token is set by --admin-token; replace it there, and a server that reads it from a file takes it within a second\n",
    });
  });
});

describe("admin-url", () => {
  test("prints the URL that signs in, and fails when no server runs", async () => {
    const data = temporaryDirectory();
    const server = await serve(data, ...ANY_PORT);
    const token = readFileSync(join(data, "production-admin-token"), "utf8").trim();
    const running = await petstore("admin-url", "--data", data);
    expect(running).toEqual({ code: 0, out: `${server.adminUrl}/?token=${token}\n`, err: "" });
    const staging = await petstore("admin-url", "--data", data, "--env", "staging");
    expect(staging.err).toBe(
      `petstore: no server with a listener for operators runs in staging (data: ${data}); start it with petstore serve\n`,
    );
    expect(await server.stop("SIGTERM")).toBe(0);
    expect((await petstore("admin-url", "--data", data)).code).toBe(1);
  });

  test("notices a server that was killed", async () => {
    const data = temporaryDirectory();
    const server = await serve(data, ...ANY_PORT);
    await server.stop("SIGKILL");
    const { code, err } = await petstore("admin-url", "--data", data);
    expect({ code, err }).toEqual({
      code: 1,
      err: `petstore: no server responds at ${server.adminUrl}; start it with petstore serve\n`,
    });
  });
});

describe("--admin-address", () => {
  test("that is taken is an error, and off turns the listener off", async () => {
    const data = temporaryDirectory();
    const server = await serve(data, ...ANY_PORT);
    const { host, port } = new URL(server.adminUrl);
    const taken = await petstore(
      "serve",
      "--port",
      "0",
      "--data",
      temporaryDirectory(),
      "--admin-address",
      host,
    );
    expect(taken).toEqual({
      code: 1,
      out: "",
      err: `petstore: cannot listen for operators on 127.0.0.1 port ${port}: the port is in use; stop the other program or choose another --admin-address\n`,
    });
    const off = await serve(temporaryDirectory(), "--admin-address", "off");
    expect(off.startMessage).toContain("  Admin        off\n");
    expect(await Promise.all([server.stop("SIGTERM"), off.stop("SIGTERM")])).toEqual([0, 0]);
  });

  test("two servers on the default get a port each", async () => {
    const [first, second] = await Promise.all([serve(temporaryDirectory()), serve(temporaryDirectory())]);
    expect(first.adminUrl).not.toBe(second.adminUrl);
    for (const server of [first, second]) expect((await fetch(`${server.adminUrl}/livez`)).status).toBe(200);
    expect(await Promise.all([first.stop("SIGTERM"), second.stop("SIGTERM")])).toEqual([0, 0]);
  });

  test("a port of its own is used", async () => {
    const port = freePort();
    const server = await serve(temporaryDirectory(), "--admin-address", `127.0.0.1:${port}`);
    expect(server.adminUrl).toBe(`http://127.0.0.1:${port}`);
    expect(await server.stop("SIGTERM")).toBe(0);
  });
});
