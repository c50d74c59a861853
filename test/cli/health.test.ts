import { afterAll, expect, setDefaultTimeout, test } from "bun:test";
import { freePort } from "../../harness/ports.ts";
import { cleanUp, EXECUTABLE, InProcessCli, temporaryDirectory } from "./cli.ts";
import { serve } from "./server-process.ts";

// Processes take long to start on a busy machine.
setDefaultTimeout(30_000);
afterAll(cleanUp);

const cli = new InProcessCli();
const health = (port: number) => cli.run(["health", "--port", `${port}`]);

test("health succeeds while the server serves, and fails while it drains and when it has stopped", async () => {
  const port = freePort();
  const url = `http://127.0.0.1:${port}/healthz`;
  const server = await serve(temporaryDirectory(), "--port", `${port}`, "--drain-delay", "5m");
  expect(await health(port)).toEqual({ code: 0, out: `The server at ${url} serves.\n`, err: "" });

  server.child.kill("SIGTERM");
  while ((await fetch(url)).ok);
  expect(await health(port)).toMatchObject({
    code: 1,
    err: `the server at ${url} responds with 503; it is about to stop`,
  });

  await server.stop("SIGKILL");
  expect(await health(port)).toMatchObject({
    code: 1,
    err: `the server at ${url} does not respond (ECONNREFUSED)`,
  });
});

test("health asks the server itself, whatever proxy the environment names", async () => {
  const port = freePort();
  const server = await serve(temporaryDirectory(), "--port", `${port}`);
  const proxy = `http://127.0.0.1:${freePort()}`;
  const child = Bun.spawn([EXECUTABLE, "health", "--port", `${port}`], {
    env: { ...process.env, HTTP_PROXY: proxy, http_proxy: proxy },
    stderr: "pipe",
  });
  expect({ code: await child.exited, err: await child.stderr.text() }).toEqual({ code: 0, err: "" });
  await server.stop("SIGKILL");
});

test("a server that accepts and never responds is a failure after two seconds", async () => {
  using silent = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } });
  expect((await health(silent.port)).err).toEndWith(" does not respond (timeout)");
});
