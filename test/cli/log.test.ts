import { afterAll, expect, test, setDefaultTimeout } from "bun:test";
import { Child } from "../../harness/child.ts";
import { type PetstoreServer, startPetstore } from "../../harness/petstore.ts";
import { cleanUp, EXECUTABLE, petstore, temporaryDirectory } from "./cli.ts";
import { serve } from "./server-process.ts";

// Processes take long to start on a busy machine.
setDefaultTimeout(30_000);
afterAll(cleanUp);

const textOf = (line: string) => line.replace(/^\S+Z (\w+) .*\[([\w.-]+)\].*$/, "$1 $2");

/** Resolves when the log has so many changes of the key. */
async function keyChanges({ log }: PetstoreServer, id: number, count: number): Promise<unknown[]> {
  for (;;) {
    const lines = log.filter(({ event }) => event === "key.changed").map(({ text }) => JSON.parse(text));
    const changes = lines.filter(({ keyId }) => keyId === id);
    if (changes.length >= count) return changes;
    await Bun.sleep(10);
  }
}

test("the log has the changes of keys that the server applies", async () => {
  const data = temporaryDirectory();
  const server = await startPetstore(["--port", "0", "--data", data]);
  await petstore("keys", "create", "--name", "x", "--plan", "pro", "--data", data);
  await keyChanges(server, 2, 1);
  await petstore("keys", "revoke", "2", "--data", data);
  expect(await keyChanges(server, 2, 2)).toMatchObject([
    { level: "info", plan: "pro", state: "active", expiresAt: null },
    { level: "info", plan: "pro", state: "revoked", expiresAt: null },
  ]);
  await server.stop();
});

test("--log-format text is for people, and --log-level leaves out what is less important", async () => {
  const { stop, log } = await serve(temporaryDirectory(), "--log-format", "text", "--host", "0.0.0.0");
  expect(await stop("SIGTERM")).toBe(0);
  expect((await log()).map(textOf)).toContain("info server.started");

  const quiet = await serve(temporaryDirectory(), "--log-level", "warn", "--host", "0.0.0.0");
  expect(await quiet.stop("SIGTERM")).toBe(0);
  const lines = (await quiet.log()).map((line) => JSON.parse(line));
  expect(lines.map(({ event, host }) => [event, host])).toEqual([["connections.plain-text", "0.0.0.0"]]);
});

test("--access-log - writes a line for each request to standard output", async () => {
  const command = [EXECUTABLE, "serve", "--port", "0", "--data", temporaryDirectory(), "--access-log", "-"];
  const child = new Child(command);
  const [, url = ""] = await child.line(/^ {2}API +(\S+)$/);
  const accessLine = child.line(/^(\{.*"status":.*\})$/);
  expect((await fetch(`${url}/pets`)).status).toBe(401);
  const [, line = ""] = await accessLine;
  expect(JSON.parse(line)).toMatchObject({ keyId: null, method: "GET", operation: null, status: 401 });
  await child.stop();
});

test("an access log that cannot be opened is an error that names it", async () => {
  const data = temporaryDirectory();
  const { code, err } = await petstore(
    "serve",
    "--port",
    "0",
    "--data",
    data,
    "--access-log",
    "missing/a.log",
  );
  expect({ code, err }).toEqual({
    code: 1,
    err: "petstore: cannot open the access log: missing/a.log: a part of the path does not exist\n",
  });
});
