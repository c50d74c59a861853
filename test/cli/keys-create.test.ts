import { afterAll, describe, expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { isWellFormedSecret } from "../../src/domain/api-keys.ts";
import { cleanUp, InProcessCli } from "./cli.ts";
import { createKey, DETAILS, findCredential, FREE_KEY, showKey } from "./keys.ts";

afterAll(cleanUp);

describe("keys create", () => {
  test("creates the data directory and the database, and prints a key that works", async () => {
    const cli = new InProcessCli();
    expect(existsSync(cli.dataDir)).toBeFalse();
    const created = await createKey(cli, "--name", "mobile app", "--plan", "pro", "--expires", "30d");
    expect<Record<string, unknown>>({ ...created }).toMatchObject({
      id: 1,
      key: expect.any(String),
      name: "mobile app",
      owner: null,
      notes: null,
      labels: [],
      plan: "pro",
      access: "write",
      limits: { perMinute: 300, perDay: 10_000 },
      createdAt: "2026-11-15T12:00:00.000Z",
      expiresAt: "2026-12-15T12:00:00.000Z",
    });
    expect(isWellFormedSecret(created.key, "production")).toBeTrue();
    expect((await findCredential(cli, created.key))?.key).toMatchObject({
      id: 1,
      name: "mobile app",
      plan: "pro",
    });
  });

  test("prints the key once, with a command to try it", async () => {
    const { out } = await new InProcessCli().run(["keys", "create", ...FREE_KEY]);
    const [secret = ""] = /pet_live_\w+/.exec(out) ?? [];
    expect(out).toBe(`Created key 1 "app" in production: free plan, 60 requests per minute, 1,000 per day

  ${secret}

This is the only time it is shown: Petstore stores only its hash. Try it in a browser or with curl:

  http://127.0.0.1:8080/docs#try-it
  curl -i http://127.0.0.1:8080/v1/pets -H "Authorization: Bearer ${secret}"
`);
  });

  test("an expiry and read-only access are part of the summary", async () => {
    const flags = [...FREE_KEY, "--expires", "1h", "--access", "read"];
    expect((await new InProcessCli().run(["keys", "create", ...flags])).out).toContain(
      "60 requests per minute, 1,000 per day; read-only; expires at 2026-11-15T13:00:00.000Z\n",
    );
  });

  test("with --port 0 the URL is unknown, so there is no command to try it", async () => {
    const { out } = await new InProcessCli().run(["keys", "create", ...FREE_KEY, "--port", "0"]);
    expect(out).toEndWith("stores only its hash. A server on --port 0 prints its URL when it starts.\n");
    expect(out).not.toContain("curl");
  });

  test("staging keys have their own prefix, database and URL", async () => {
    const cli = new InProcessCli();
    await createKey(cli);
    const { out } = await cli.run(["keys", "create", ...FREE_KEY, "--env", "staging"]);
    expect(out).toStartWith('Created key 1 "app" in staging');
    expect(out).toMatch(/^ {2}pet_test_\w+$/m);
    expect(out).toContain("http://127.0.0.1:8081/v1/pets");
  });

  test("settings of the server come from variables too", async () => {
    const { out } = await new InProcessCli().run(["keys", "create", ...FREE_KEY, "--json"], {
      PETSTORE_FREE_LIMITS: "7/8",
    });
    expect(JSON.parse(out)).toMatchObject({ limits: { perMinute: 7, perDay: 8 } });
  });

  test("owner, notes, labels and access", async () => {
    const cli = new InProcessCli();
    const details = { owner: "ann@example.com", notes: "one\ntwo", labels: ["a", "b", "c"], access: "read" };
    expect<object>(await createKey(cli, ...FREE_KEY, ...DETAILS, "--access", "read")).toMatchObject(details);
    expect(await showKey(cli, 1)).toMatchObject(details);
    const { out } = await cli.run("keys show 1");
    expect(out).toContain(
      "Owner        ann@example.com\nNotes        one\n             two\nLabels       a, b, c\n",
    );
    expect(out).toContain("Access       read\n");
  });

  test.each([
    ["--access admin", '--access is "admin"; it must be read or write'],
    [
      `--label ${Array.from({ length: 21 }, (_, n) => n).join(",")}`,
      "--label must be an array of at most 20 different items",
    ],
    [
      `--owner ${"x".repeat(201)}`,
      `--owner is "${"x".repeat(60)}…"; it must be a string of 1 to 200 characters on one line that is not blank`,
    ],
  ])("%s is wrong usage", async (flags, err) => {
    expect(await new InProcessCli().run(["keys", "create", ...FREE_KEY, ...flags.split(" ")])).toEqual({
      code: 2,
      out: "",
      err,
    });
  });
});
