import { afterAll, expect, test, setDefaultTimeout } from "bun:test";
import { readdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { cleanUp, EXECUTABLE, petstore, spawnPetstore, spawnTracked, temporaryDirectory } from "./cli.ts";

setDefaultTimeout(30_000);
afterAll(cleanUp);

type Child = ReturnType<typeof spawnPetstore>;

/** Reads until the text has come, and returns all of it. */
async function outputUntil(stream: Child["stdout"], end: string): Promise<string> {
  const decoder = new TextDecoder();
  let output = "";
  for await (const chunk of stream) {
    output += decoder.decode(chunk, { stream: true });
    if (output.includes(end)) return output;
  }
  throw new Error(`the output ended: ${output}`);
}

interface ListedKey {
  readonly name: string;
  readonly plan: string;
  readonly state: string;
}

/** With the ban: a server saves its usage every second. */
async function keysOf(folder: string): Promise<readonly ListedKey[]> {
  const deadline = performance.now() + 5_000;
  for (;;) {
    const list = await petstore("keys", "list", "--json", "--data", folder);
    const keys: readonly ListedKey[] = JSON.parse(list.out);
    if (namesOfBanned(keys).length > 0 || performance.now() >= deadline) return keys;
  }
}

function namesOfBanned(keys: readonly ListedKey[]): string[] {
  return keys.filter(({ state }) => state === "banned").map(({ name }) => name);
}

test("a newcomer sees keys of every plan, limits and a ban within ten seconds, and Ctrl-C leaves nothing behind", async () => {
  const startedAt = performance.now();
  const TMPDIR = temporaryDirectory();
  const cwd = temporaryDirectory();
  const child = spawnPetstore(["demo"], { cwd, variables: { TMPDIR } });
  const message = await outputUntil(child.stdout, "curl ");
  const [, url = ""] = /^ {2}API +(\S+)$/m.exec(message) ?? [];
  const [, secret = ""] = /Bearer (pet_live_\w+)/.exec(message) ?? [];
  const response = await fetch(`${url}/pets?limit=100`, { headers: { Authorization: `Bearer ${secret}` } });
  expect([response.status, ((await response.json()) as unknown[]).length]).toEqual([200, 100]);

  await outputUntil(child.stderr, '"event":"key.banned"');
  expect(performance.now() - startedAt).toBeLessThan(10_000);
  const [folder = ""] = readdirSync(TMPDIR);
  const keys = await keysOf(join(TMPDIR, folder));
  expect(new Set(keys.map(({ plan }) => plan))).toEqual(new Set(["free", "pro", "business", "enterprise"]));
  expect(namesOfBanned(keys)).toEqual(["Forgotten script"]);

  child.kill("SIGINT");
  expect(await child.exited).toBe(0);
  expect([readdirSync(TMPDIR), readdirSync(cwd)]).toEqual([[], []]);
});

test("the folder is removed after an error that nothing catches", async () => {
  const TMPDIR = temporaryDirectory();
  const cwd = temporaryDirectory();
  writeFileSync(join(cwd, "first.ts"), 'setTimeout(() => { throw new Error("the first"); }, 2_000);');
  const main = join(dirname(EXECUTABLE), "src/cli/main.ts");
  const command = [process.execPath, "--preload", "./first.ts", main, "demo"];
  const child = spawnTracked(command, { cwd, variables: { TMPDIR } });
  expect(await child.exited).toBe(1);
  expect(readdirSync(TMPDIR)).toEqual([]);
});

test("settings of the environment have no effect: the demo touches no other data", async () => {
  const TMPDIR = temporaryDirectory();
  const data = join(temporaryDirectory(), "data");
  const variables = { TMPDIR, PETSTORE_DATA: data, PETSTORE_FREE_LIMITS: "1/1" };
  const child = spawnPetstore(["demo"], { variables });
  await outputUntil(child.stdout, "curl ");
  child.kill("SIGTERM");
  expect(await child.exited).toBe(0);
  expect(() => readdirSync(data)).toThrow("ENOENT");
});
