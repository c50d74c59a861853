import { expect, test } from "bun:test";
import { postgresUrl } from "../engines/postgres.ts";
import { valkeyUrl } from "../engines/valkey.ts";
import { audit } from "./audit.ts";
import { Fleet } from "./fleet.ts";
import { Load } from "./load.ts";
import { addFirst } from "./operations.ts";

const PER_SECOND = 150;

test("four servers restarted one by one under load: no request fails, no create is lost or doubled", async () => {
  const place = ["--database-url", await postgresUrl(), "--limits-url", await valkeyUrl()];
  const fleet = await Fleet.start({ size: 4, place, flags: ["--limits-timeout", "1s"] });
  const [url = ""] = fleet.urls;
  const { key } = await fleet.newKey();
  await addFirst(url, key);

  const load = new Load({ urls: fleet.urls, key, perSecond: PER_SECOND });
  const exits: unknown[] = [];
  for (const [member] of fleet.urls.entries()) {
    exits.push(await fleet.end(member, "SIGTERM"));
    await fleet.revive(member);
  }
  await load.stop();

  expect(exits).toEqual([0, 0, 0, 0]);
  expect(load.failures).toEqual([]);
  // A closed door is met and gone past; an error is not.
  const statuses = new Set(load.attempts.map(({ status }) => status));
  expect([...statuses].filter((status) => ![0, 200, 201].includes(status))).toEqual([]);
  const { acknowledged, lost, doubled } = await audit(url, key, load.acknowledged);
  expect({ lost, doubled }).toEqual({ lost: [], doubled: [] });
  expect(acknowledged).toBeGreaterThan(30);
  await fleet.stop();
}, 30_000);
