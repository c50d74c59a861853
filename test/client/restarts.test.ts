import { expect, test } from "bun:test";
import { Petstore } from "../../src/client/index.ts";
import { temporaryDirectory } from "../../trials/harness/cleanup.ts";
import { createKey, startPetstore } from "../../trials/harness/petstore.ts";
import { freePort } from "../../trials/harness/server.ts";
import { until } from "../timing.ts";

const CREATES = 400;
const CONCURRENT = 20;
const KILLS = 3;

test("every create happens once and every pet is listed once, while the server is killed three times", async () => {
  const storage = ["--data", temporaryDirectory("client-restarts")];
  const flags = [...storage, "--port", String(freePort()), "--admin-address", "off"];
  let server = await startPetstore(flags);
  const { key } = await createKey(storage, "enterprise", "--per-minute", "10000", "--per-day", "10000000");
  let retries = 0;
  const statuses = new Set<number>();
  const petstore = new Petstore({
    key,
    baseUrl: server.url,
    onRetry: () => void retries++,
    onResponse: ({ response }) => void statuses.add(response.status),
  });

  const created = new Map<bigint, string>();
  let started = 0;
  async function createPets(): Promise<void> {
    while (started < CREATES) {
      const name = `pet ${++started}`;
      const { id } = await petstore.pets.create({ name, categoryId: 2n ** 62n });
      created.set(id, name);
    }
  }
  /** After equal parts of the creates, while others are in progress. */
  async function killServer(): Promise<void> {
    for (let kill = 1; kill <= KILLS; kill++) {
      await until(() => created.size >= (CREATES * kill) / (KILLS + 1), 10_000);
      await server.stop("SIGKILL");
      server = await startPetstore(flags);
    }
  }
  await Promise.all([killServer(), ...Array.from({ length: CONCURRENT }, createPets)]);

  const listed: (readonly [bigint, string])[] = [];
  for await (const { id, name } of petstore.pets.list()) listed.push([id, name]);
  await server.stop();
  expect(created.size).toBe(CREATES);
  expect(listed).toEqual([...created].toSorted(([a], [b]) => Number(a - b)));
  expect(new Set(created.values()).size).toBe(CREATES);
  expect(retries).toBeGreaterThan(0);
  expect(statuses).not.toContain(429);
}, 120_000);

test("a client that is made while its server restarts goes on until the server is there", async () => {
  const port = freePort();
  let server: Bun.Server<undefined> | undefined;
  const start = () => {
    server ??= Bun.serve({ port, hostname: "127.0.0.1", fetch: () => Response.json([]) });
  };
  const petstore = new Petstore({
    key: "pet_live_x",
    baseUrl: `http://127.0.0.1:${port}/v1`,
    // A client that goes by the number of its requests has given up by then.
    onRetry: ({ attempt }) => void (attempt === 4 && start()),
  });
  const { response } = await petstore.pets.listPage();
  await server?.stop(true);
  expect(response.attempts).toBe(5);
});
