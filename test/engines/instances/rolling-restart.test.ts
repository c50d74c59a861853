import { expect, test } from "bun:test";
import { createPet } from "../../../harness/api-client.ts";
import { audit } from "../../../harness/audit.ts";
import { Fleet } from "../../../harness/fleet.ts";
import { postgresUrl } from "../../../harness/postgres.ts";
import { SteadyLoad } from "../../../harness/steady-load.ts";
import { valkeyUrl } from "../../../harness/valkey.ts";

const PER_SECOND = 150;

test("four servers restarted one by one under load: no request fails, no create is lost or duplicated", async () => {
  const storage = ["--database-url", await postgresUrl(), "--limits-url", await valkeyUrl()];
  const fleet = await Fleet.start({ size: 4, storage, flags: ["--limits-timeout", "1s"] });
  const [url = ""] = fleet.urls;
  const { key } = await fleet.createKey();
  await createPet(url, key);

  const load = new SteadyLoad({ urls: fleet.urls, key, perSecond: PER_SECOND });
  const exits: unknown[] = [];
  for (const [index] of fleet.urls.entries()) {
    exits.push(await fleet.stopServer(index));
    await fleet.startServer(index);
  }
  await load.stop();

  expect(exits).toEqual([0, 0, 0, 0]);
  expect(load.failures).toEqual([]);
  // The client retries a rejected connection at the next server; there are no errors.
  const statuses = new Set(load.attempts.map(({ status }) => status));
  expect([...statuses].filter((status) => ![0, 200, 201].includes(status))).toEqual([]);
  const { acknowledged, lost, duplicated } = await audit(url, key, load.acknowledged);
  expect({ lost, duplicated }).toEqual({ lost: [], duplicated: [] });
  expect(acknowledged).toBeGreaterThan(30);
  await fleet.stop();
}, 30_000);
