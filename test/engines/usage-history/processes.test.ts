import { beforeEach, describe, expect, test } from "bun:test";
import { temporaryFolder } from "../../../harness/cleanup.ts";
import { Fleet } from "../../../harness/fleet.ts";
import { createKey, runPetstore, startPetstore } from "../../../harness/petstore.ts";
import { postgresUrl } from "../../../harness/postgres.ts";

let folder = "";
beforeEach(() => void (folder = temporaryFolder("usage-history")));

/** Sends requests until it is stopped. Returns the times at which the responses were complete. */
function sendRequests(url: string, key: string) {
  const times: number[] = [];
  const stopping = new AbortController();
  const send = async () => {
    while (!stopping.signal.aborted) {
      try {
        await (await fetch(`${url}/pets`, { headers: { Authorization: `Bearer ${key}` } })).text();
      } catch {
        return;
      }
      times.push(performance.now());
    }
  };
  const running = Promise.all([send(), send()]);
  return {
    times,
    async stop(): Promise<number[]> {
      stopping.abort();
      await running;
      return times;
    },
  };
}

/** Requests in all of the usage history. */
async function storedRequests(storage: readonly string[], keyId: string): Promise<number> {
  const { code, out, err } = await runPetstore("usage", keyId, "--json", ...storage);
  expect({ code, err }).toEqual({ code: 0, err: "" });
  const rows: { admitted: number; limited: number }[] = JSON.parse(out);
  return rows.reduce((sum, { admitted, limited }) => sum + admitted + limited, 0);
}

async function untilMs(times: readonly number[], ms: number): Promise<void> {
  const startedAt = performance.now();
  while (performance.now() - startedAt < ms || times.length === 0) await Bun.sleep(50);
}

const storages: [string, () => Promise<string[]>][] = [
  ["SQLite", async () => ["--data", folder]],
  ["PostgreSQL", async () => ["--database-url", await postgresUrl(), "--data", folder]],
];

describe.each(storages)("usage history on %s", (_, storageOf) => {
  test("SIGKILL loses at most the last five seconds, and SIGTERM nothing", async () => {
    const storage = await storageOf();
    const flags = [...storage, "--port", "0"];
    const killed = await startPetstore(flags);
    const { id, key } = await createKey(storage);
    const load = sendRequests(killed.url, key);
    await untilMs(load.times, 7_000);
    const killedAt = performance.now();
    await killed.stop("SIGKILL");
    const times = await load.stop();
    const stored = await storedRequests(storage, id);
    expect(stored).toBeGreaterThanOrEqual(times.filter((time) => time < killedAt - 5_000).length);
    expect(stored).toBeGreaterThan(0);
    // Two requests can be counted whose responses never arrived.
    expect(stored).toBeLessThanOrEqual(times.length + 2);

    const stopped = await startPetstore(flags);
    const more = sendRequests(stopped.url, key);
    await untilMs(more.times, 500);
    const { length } = await more.stop();
    expect(await stopped.stop("SIGTERM")).toBe(0);
    expect(await storedRequests(storage, id)).toBe(stored + length);
  }, 40_000);
});

test("two servers on one PostgreSQL add up", async () => {
  const storage = ["--database-url", await postgresUrl()];
  const fleet = await Fleet.start({ size: 2, storage });
  const { id, key } = await fleet.createKey();
  const loads = fleet.urls.map((url) => sendRequests(url, key));
  for (const { times } of loads) await untilMs(times, 2_500);
  const counts = await Promise.all(loads.map(async (load) => (await load.stop()).length));
  await fleet.stop();
  expect(Math.min(...counts)).toBeGreaterThan(0);
  expect(await storedRequests(storage, id)).toBe((counts[0] ?? 0) + (counts[1] ?? 0));
}, 40_000);
