import { afterAll, describe, expect, test, setDefaultTimeout } from "bun:test";
import { CertificateAuthority } from "../../../harness/certificates.ts";
import { postgresUrl } from "../../../harness/postgres.ts";
import { valkeyUrl } from "../../../harness/valkey.ts";
import {
  cleanUp,
  EXECUTABLE,
  petstore,
  spawnPetstore,
  spawnTracked,
  temporaryDirectory,
} from "../../cli/cli.ts";
import { serve, started } from "../../cli/server-process.ts";

// Processes take long to start on a busy machine.
setDefaultTimeout(30_000);
afterAll(cleanUp);

const PLANS = ["--free-limits", "7/80", "--pro-limits", "8/90", "--business-limits", "9/100"];
const BANS = ["--ban-strikes", "2", "--ban-grace", "0", "--ban-length", "1h"];
const FREE_KEY = ["--name", "app", "--plan", "free"];

async function storages(): Promise<[string, string[]][]> {
  return [
    ["SQLite", ["--data", temporaryDirectory()]],
    [
      "PostgreSQL and Valkey",
      [
        "--data",
        temporaryDirectory(),
        "--database-url",
        await postgresUrl(),
        "--limits-url",
        await valkeyUrl(),
      ],
    ],
  ];
}

const start = (...argv: string[]) => started(spawnPetstore(["serve", "--port", "0", ...argv]));

async function output(...argv: string[]): Promise<string> {
  const { code, out, err } = await petstore(...argv);
  expect({ code, err }).toEqual({ code: 0, err: "" });
  return out;
}

describe.each(await storages())("the settings of a server, kept on %s", (_name, storage) => {
  test("keys create, list, show, set-plan and roll use them, while it runs and after it has stopped", async () => {
    const { url, stop } = await start(...PLANS, ...BANS, ...storage);
    const keys = (...argv: string[]) => output("keys", ...argv, ...storage);
    for (const isRunning of [true, false]) {
      if (!isRunning) expect(await stop("SIGTERM")).toBe(0);
      const created = await keys("create", ...FREE_KEY);
      expect(created).toContain("free plan, 7 requests per minute, 80 per day");
      expect(created).toEndWith(`' ${url}/pets\n`);
      expect(await keys("roll", "1")).toEndWith(`' ${url}/pets\n`);
      expect(await keys("list")).toMatch(/^1 +first key +- +free +write +active +\d+\/7 +\d+\/80 /m);
      expect(await keys("show", "1")).toContain("free: 7 requests per minute, 80 per day");
      expect(await keys("set-plan", "1", "pro")).toContain("pro plan: 8 requests per minute, 90 per day");
      await keys("set-plan", "1", "free");
    }
  }, 60_000);

  test("flags and variables override them", async () => {
    const { stop } = await start(...PLANS, ...storage);
    expect(await stop("SIGTERM")).toBe(0);
    const create = (...argv: string[]) => output("keys", "create", ...FREE_KEY, ...argv, ...storage);
    expect(await create("--free-limits", "1/2")).toContain("1 request per minute, 2 per day");
    expect(await create("--public-url", "https://api.example.com")).toEndWith(
      "' https://api.example.com/v1/pets\n",
    );
    expect(await create("--port", "9000")).toEndWith("' http://127.0.0.1:9000/v1/pets\n");
    const child = spawnPetstore(["keys", "create", ...FREE_KEY, ...storage], {
      variables: { PETSTORE_FREE_LIMITS: "3/4", PETSTORE_PUBLIC_URL: "https://pets.example" },
    });
    const out = await child.stdout.text();
    expect(out).toContain("3 requests per minute, 4 per day");
    expect(out).toEndWith("' https://pets.example/v1/pets\n");
  }, 60_000);

  test("the next start replaces them", async () => {
    const first = await start(...PLANS, ...storage);
    expect(await first.stop("SIGTERM")).toBe(0);
    const second = await start("--public-url", "https://api.example.com", ...storage);
    expect(await second.stop("SIGTERM")).toBe(0);
    const created = await output("keys", "create", ...FREE_KEY, ...storage);
    expect(created).toContain("free plan, 60 requests per minute, 1,000 per day");
    expect(created).toEndWith("' https://api.example.com/v1/pets\n");
  }, 60_000);
});

test("a URL from a file that can be read only once is read only once", async () => {
  const database = await postgresUrl();
  const data = ["--data", temporaryDirectory()];
  const { stop } = await start(...PLANS, ...data, "--database-url", database);
  expect(await stop("SIGTERM")).toBe(0);
  const line = '"$0" keys create --name x --plan free --database-url-file <(echo "$1")';
  const child = spawnTracked(["bash", "-c", line, EXECUTABLE, database], { cwd: temporaryDirectory() });
  expect(await child.stdout.text()).toContain("free plan, 7 requests per minute, 80 per day");
});

test("the URL of a server with a certificate is https", async () => {
  const data = temporaryDirectory();
  const { certFile, keyFile } = new CertificateAuthority().issue("IP:127.0.0.1");
  const { url, stop } = await serve(data, "--tls-cert", certFile, "--tls-key", keyFile);
  expect(url).toMatch(/^https:\/\/127\.0\.0\.1:\d+\/v1$/);
  expect(await output("keys", "create", ...FREE_KEY, "--data", data)).toEndWith(`' ${url}/pets\n`);
  expect(await stop("SIGTERM")).toBe(0);
});

test("PETSTORE_PORT=0 does not hide the port that the server listens on", async () => {
  const data = temporaryDirectory();
  const { url, stop } = await serve(data);
  const child = spawnPetstore(["keys", "create", ...FREE_KEY, "--data", data], {
    variables: { PETSTORE_PORT: "0" },
  });
  expect(await child.stdout.text()).toEndWith(`' ${url}/pets\n`);
  expect(await stop("SIGTERM")).toBe(0);
});
