import { beforeAll, expect, test } from "bun:test";
import { cleanUpAfterAll, InProcessCli, type InProcessServer } from "./cli.ts";
import { FREE_KEY } from "./keys.ts";

// Commands use the settings of the server, which it keeps with its data.

cleanUpAfterAll();

const PLANS = ["--free-limits", "7/80", "--pro-limits", "8/90", "--business-limits", "9/100"];

const cli = new InProcessCli();
let server: InProcessServer;
beforeAll(async () => void (server = await cli.serve(PLANS)));

async function keys(argv: readonly string[], variables = {}): Promise<string> {
  const { code, out, err } = await cli.run(["keys", ...argv], variables);
  expect({ code, err }).toEqual({ code: 0, err: "" });
  return out;
}

test("keys create, list, show, set-plan and rotate use them, while it runs and after it has stopped", async () => {
  const { url, stop } = server;
  for (const isRunning of [true, false]) {
    if (!isRunning) await stop();
    const created = await keys(["create", ...FREE_KEY]);
    expect(created).toContain("free plan, 7 requests per minute, 80 per day");
    expect(created).toContain(`curl -i ${url}/pets -H`);
    expect(await keys(["rotate", "1"])).toContain(`curl -i ${url}/pets -H`);
    expect(await keys(["list"])).toMatch(/^1 +first key +- +free +write +active +\d+\/7 +\d+\/80 /m);
    expect(await keys(["show", "1"])).toContain("free: 7 requests per minute, 80 per day");
    expect(await keys(["set-plan", "1", "pro"])).toContain("pro plan: 8 requests per minute, 90 per day");
    await keys(["set-plan", "1", "free"]);
  }
});

test("flags and variables override them, but PETSTORE_PORT=0 does not hide the port of the server", async () => {
  const create = (argv: readonly string[], variables = {}) =>
    keys(["create", ...FREE_KEY, ...argv], variables);
  expect(await create(["--free-limits", "1/2"])).toContain("1 request per minute, 2 per day");
  expect(await create(["--public-url", "https://api.example.com"])).toContain(
    "curl -i https://api.example.com/v1/pets -H",
  );
  expect(await create(["--port", "9000"])).toContain("curl -i http://127.0.0.1:9000/v1/pets -H");
  const variables = { PETSTORE_FREE_LIMITS: "3/4", PETSTORE_PUBLIC_URL: "https://pets.example" };
  const out = await create([], variables);
  expect(out).toContain("3 requests per minute, 4 per day");
  expect(out).toContain("curl -i https://pets.example/v1/pets -H");
  expect(await create([], { PETSTORE_PORT: "0" })).toContain(`curl -i ${server.url}/pets -H`);
});

test("the next start replaces them", async () => {
  const second = await cli.serve(["--public-url", "https://api.example.com"]);
  await second.stop();
  const created = await keys(["create", ...FREE_KEY]);
  expect(created).toContain("free plan, 60 requests per minute, 1,000 per day");
  expect(created).toContain("curl -i https://api.example.com/v1/pets -H");
});
