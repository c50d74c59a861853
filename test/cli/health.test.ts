import { expect, spyOn, test } from "bun:test";
import { cleanUpAfterAll, failure, InProcessCli, resultOf, spawnPetstore } from "./cli.ts";

cleanUpAfterAll();

const cli = new InProcessCli();
const health = (port: number) => cli.run(["health", "--port", `${port}`]);

test("health succeeds while the server serves, and fails while it drains and when it has stopped", async () => {
  let status = 200;
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: ({ url }) => new Response(null, { status: url.endsWith("/healthz") ? status : 404 }),
  });
  const port = Number(server.port);
  const url = `http://127.0.0.1:${port}/healthz`;
  expect(await health(port)).toEqual({ code: 0, out: `The server at ${url} serves.\n`, err: "" });

  // It asks the server itself, whatever proxy the environment names.
  const proxy = "http://127.0.0.1:1";
  const variables = { HTTP_PROXY: proxy, http_proxy: proxy };
  const child = spawnPetstore(["health", "--port", `${port}`], { variables });
  expect(await resultOf(child)).toMatchObject({ code: 0, err: "" });

  status = 503;
  expect(await health(port)).toEqual(failure(`the server at ${url} responds with 503; it is about to stop`));
  await server.stop(true);
  expect(await health(port)).toEqual(failure(`the server at ${url} does not respond (ECONNREFUSED)`));
});

test("a server that accepts and never responds is a failure after two seconds", async () => {
  const { timeout } = AbortSignal;
  const soon = spyOn(AbortSignal, "timeout").mockImplementation((ms) => timeout.call(AbortSignal, ms / 100));
  using silent = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } });
  expect((await health(silent.port)).err).toEndWith(" does not respond (timeout)");
  expect(soon).toHaveBeenCalledWith(2_000);
  soon.mockRestore();
});
