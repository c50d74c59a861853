/** `npx bun trials/faults/client.ts`: the client library against a server that is killed and that limits it. */
import { Petstore } from "../../src/client/index.ts";
import { temporaryFolder } from "../harness/cleanup.ts";
import { integer, runCommand } from "../harness/command-line.ts";
import { createKey, startPetstore } from "../harness/petstore.ts";
import { freePort } from "../harness/server.ts";

interface ClientRestartsOptions {
  readonly creates: number;
  readonly kills: number;
  /** The rate limit of the client's key. */
  readonly perMinute: number;
  /** Calls at a time. */
  readonly concurrency: number;
}

/** Creates pets with the client library while the server is killed and started again, then lists them. */
export async function clientRestarts({ creates, kills, perMinute, concurrency }: ClientRestartsOptions) {
  const storage = ["--data", temporaryFolder("client-restarts")];
  const flags = [...storage, "--port", String(freePort()), "--admin-address", "off"];
  let server = await startPetstore(flags);
  const limits = ["--per-minute", String(perMinute), "--per-day", String(perMinute * 1_000)];
  const { key } = await createKey(storage, "enterprise", ...limits);

  const statuses = new Map<number, number>();
  let retries = 0;
  let replays = 0;
  const petstore = new Petstore({
    key,
    baseUrl: server.url,
    onRetry: () => void retries++,
    onResponse({ response }) {
      statuses.set(response.status, (statuses.get(response.status) ?? 0) + 1);
      if (response.replayed) replays++;
    },
  });

  const created = new Map<bigint, string>();
  let started = 0;
  async function createPets(): Promise<void> {
    while (started < creates) {
      const name = `pet ${++started}`;
      const { id } = await petstore.pets.create({ name, categoryId: 2n ** 62n });
      created.set(id, name);
    }
  }
  /** After equal parts of the creates, while others are in progress. */
  async function killServer(): Promise<void> {
    for (let kill = 1; kill <= kills; kill++) {
      while (created.size < (creates * kill) / (kills + 1)) await Bun.sleep(1);
      await server.stop("SIGKILL");
      server = await startPetstore(flags);
    }
  }
  const startedAt = performance.now();
  await Promise.all([killServer(), ...Array.from({ length: concurrency }, createPets)]);

  const listed = new Map<bigint, string>();
  let duplicates = 0;
  for await (const { id, name } of petstore.pets.list()) {
    if (listed.has(id)) duplicates++;
    listed.set(id, name);
  }
  const seconds = (performance.now() - startedAt) / 1000;
  await server.stop();
  return {
    created: created.size,
    listed: listed.size,
    /** Pets that were listed twice. */
    duplicates,
    names: new Set(listed.values()).size,
    /** Pets whose create succeeded and which the list does not have with the same name. */
    missing: [...created].filter(([id, name]) => listed.get(id) !== name).length,
    rateLimited: statuses.get(429) ?? 0,
    retries,
    replays,
    seconds,
  };
}

if (import.meta.main)
  await runCommand({
    name: "client",
    flags: {
      creates: integer(10_000, 1_000_000),
      kills: integer(3, 100),
      "per-minute": integer(6_000, 1_000_000),
    },
    maxMinutes: 15,
    async main({ creates, kills, "per-minute": perMinute }) {
      let unhandled = 0;
      process.on("unhandledRejection", () => void unhandled++);
      const result = await clientRestarts({ creates, kills, perMinute, concurrency: 50 });
      const { created, listed, names, duplicates, missing, rateLimited, retries, replays, seconds } = result;
      const isExact =
        [created, listed, names].every((count) => count === creates) && duplicates + missing === 0;
      const isRight = isExact && rateLimited === 0 && unhandled === 0;
      process.stdout
        .write(`${created} created, ${listed} listed, ${names} different names, ${duplicates} listed twice,
${missing} missing, ${rateLimited} responses with 429, ${retries} retries, ${replays} replays,
${unhandled} unhandled rejections, ${seconds.toFixed(1)} s: ${isRight ? "passed" : "FAILED"}\n`);
      return isRight ? 0 : 1;
    },
  });
