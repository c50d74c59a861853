import { afterAll, expect, test } from "bun:test";
import { openPostgres } from "../../../src/store/postgres/open-postgres.ts";
import { startPetstore } from "../../../trials/harness/petstore.ts";
import { postgresUrl } from "../../../trials/harness/postgres.ts";
import { freezeTree, thawTree } from "../../../trials/harness/processes.ts";
import { bearer } from "../../bearer.ts";
import { cleanUp, InProcessCli } from "../../cli/cli.ts";
import { BY } from "../../key-store-arguments.ts";
import { until } from "../../timing.ts";
import { startStallingProxy } from "../../../trials/harness/stalling-proxy.ts";

afterAll(cleanUp);

const PET = JSON.stringify({ name: "late", categoryId: 1 });

function send(url: string, key: string, method: "GET" | "POST" = "GET"): Promise<Response> {
  const headers = { ...bearer(key), "Content-Type": "application/json" };
  return fetch(`${url}/pets`, { method, headers, ...(method === "POST" && { body: PET }) });
}

const createKey = async (cli: InProcessCli, storage: readonly string[], plan: string) =>
  (await cli.json<{ key: string }>("keys", "create", "--name", plan, "--plan", plan, ...storage)).key;

/** Longer than what is cached may be used. */
const PAUSE_MS = 1_500;

test.each(["PostgreSQL", "SQLite"])(
  "a server that was paused accepts no key that was revoked meanwhile, and applies the limits and pets of now, on %s",
  async (database) => {
    const cli = new InProcessCli();
    const storage = database === "SQLite" ? [] : ["--database-url", await postgresUrl()];
    const server = await startPetstore([...storage, "--data", cli.dataDir, "--admin-address", "127.0.0.1:0"]);
    const [revoked, limited] = [
      await createKey(cli, storage, "business"),
      await createKey(cli, storage, "free"),
    ];
    for (const key of [revoked, limited])
      for (let read = 0; read < 3; read++) expect((await send(server.url, key)).status).toBe(200);

    const methods = Array.from({ length: 15 }, () => ["GET", "POST"] as const).flat();
    freezeTree(server.pid);
    const pausedAt = performance.now();
    await cli.json("keys", "revoke", "2", "--yes", ...storage);
    await cli.json("plans", "update", "free", "--per-minute", "4", ...storage);
    await cli.json("pets", "add", "--name", "new", "--category", "1", ...storage);
    const waiting = methods.map((method) => send(server.url, revoked, method));
    const limits = [1, 2].map(() => send(server.url, limited));
    await Bun.sleep(PAUSE_MS - (performance.now() - pausedAt));
    thawTree(server.pid);

    expect((await Promise.all(waiting)).map(({ status }) => status)).toEqual(methods.map(() => 401));
    const responses = await Promise.all(limits);
    expect(responses.map(({ status }) => status).toSorted()).toEqual([200, 429]);
    const page = responses.find(({ ok }) => ok);
    expect(await page?.json()).toMatchObject([{ name: "new" }]);
    await server.stop();
  },
  60_000,
);

test("a revoked key gets 401 although the connection hangs on which the changes were read, before the query times out", async () => {
  const cli = new InProcessCli();
  const url = await postgresUrl();
  await using proxy = await startStallingProxy(new URL(url));
  const server = await cli.serve(["--database-url", proxy.url]);
  const key = await createKey(cli, ["--database-url", url], "free");
  expect((await send(server.url, key)).status).toBe(200);
  // The time in which the query hangs is short, so the key is revoked on a connection that is open already.
  const stores = await openPostgres(url, { schema: "production" });
  expect(await stores.keys.getKey(2)).toMatchObject({ plan: "free" });
  await proxy.stallAt("FROM key_revision");
  await stores.keys.updateKey(2, { revokedAt: Date.now() }, BY);
  // A request with an invalid body reads nothing on the connection that hangs.
  const invalid = { method: "POST", headers: bearer(key), body: "{}" };
  await until(async () => (await fetch(`${server.url}/pets`, invalid)).status === 401, 1_000);
  expect(server.lines.filter((line) => line.includes('"database.unavailable"'))).toEqual([]);
  await stores.close();
  await server.stop();
}, 60_000);
