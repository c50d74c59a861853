import { afterAll, beforeAll, expect, test } from "bun:test";
import { type App, startApp } from "../../../src/app.ts";
import { createClock } from "../../../src/clock.ts";
import { configOf } from "../../../src/config/config.ts";
import { SETTINGS } from "../../../src/config/options.ts";
import { type Flags, parseOptions } from "../../../src/config/parse-options.ts";
import { silentLog } from "../../../src/observe/log.ts";
import { bearer } from "../../bearer.ts";
import { type EarlierRelease, type KeyName, readRecorded, SHOP } from "./previous-release.ts";
import { allKeys } from "../../key-store-arguments.ts";
import { withServiceValues } from "../../pets.ts";

/** This release on the data of an earlier one. To the server, it is the moment at which the fixtures were made. */
async function start(flags: Flags, at: number): Promise<App> {
  const values = parseOptions(SETTINGS, { ...flags, port: ["0"], "admin-address": ["off"] }, {});
  const startedAt = performance.now();
  const clock = createClock({ wall: () => Math.round(at + performance.now() - startedAt) });
  return startApp(configOf(values), { clock, log: silentLog });
}

/** Data of an earlier release, on either database. */
export function upgradedDataCases(
  engine: "sqlite" | "postgres",
  release: EarlierRelease,
  flags: () => Promise<Flags>,
): void {
  const recorded = readRecorded(engine, release);
  let app: App;

  beforeAll(async () => void (app = await start(await flags(), recorded.at)));
  afterAll(() => app.close());

  const send = (secret: string, path: string, init: RequestInit = {}) => {
    const headers = { ...bearer(secret), "Content-Type": "application/json" };
    return fetch(app.url + path, { ...init, headers: { ...headers, ...init.headers } });
  };

  // The first test: a request of another one would count.
  test.each(["hour", "day"] as const)("the usage history by %s adds up to what it was", async (by) => {
    const totals = await app.usageHistory.usageByKey({ by, since: 0, until: recorded.at });
    expect(totals.map(({ keyId, admitted, limited }) => [keyId, admitted, limited])).toEqual([
      [3, 136, 0],
      [6, 60, 10],
      [1, 11, 0],
      [2, 4, 0],
      [4, 3, 0],
    ]);
  });

  test("the limits and ban rules, which were settings, are stored: the defaults of that time", async () => {
    expect(await app.policies.readPolicy()).toEqual({
      plans: {
        free: { perMinute: 60, perDay: 1_000 },
        pro: { perMinute: 300, perDay: 10_000 },
        business: { perMinute: 1_000, perDay: 100_000 },
        anonymous: { perMinute: 300, perDay: 10_000 },
      },
      ban: { strikes: 10, graceMs: 1_000, lengthMs: 300_000, maxLengthMs: 2_400_000 },
    });
  });

  test("used quotas and bans go on where they were", async () => {
    const response = await send(recorded.secrets.mobile, "/pets?limit=1");
    expect(response.headers.get("x-ratelimit-remaining")).toBe(`${recorded.remaining - 1}`);
    const { status } = await send(recorded.secrets.banned, "/pets?limit=1");
    expect(status).toBe(429);
  });

  test("every key works, or does not, as before; so does a secret that was replaced", async () => {
    const others = Object.entries(recorded.statuses).filter(([name]) => name !== "banned");
    expect(others).toHaveLength(5);
    for (const [name, status] of others) {
      const response = await send(recorded.secrets[name as KeyName], "/pets?limit=1");
      expect([name, response.status]).toEqual([name, status]);
    }
    expect((await send(recorded.previousSecret, "/pets?limit=1")).status).toBe(200);
  });

  test("a key has its owner, notes, labels and hint, and is not disabled", async () => {
    const [key] = await allKeys(app.keys);
    const { owner, notes, label, access } = SHOP;
    expect(key).toMatchObject({ owner, notes, labels: [label], access });
    expect(key?.disabledAt).toBeUndefined();
    const secrets = await app.keys.listSecrets([key?.id ?? 0]);
    const { shop } = recorded.secrets;
    expect(secrets.get(key?.id ?? 0)?.[0]?.hint).toBe(`${shop.slice(0, 13)}…${shop.slice(-4)}`);
  });

  test("pets and orders are the same to the byte, for the keys that may see them", async () => {
    for (const { key, path, body } of recorded.responses) {
      expect([path, await (await send(recorded.secrets[key], path)).text()]).toEqual([path, body]);
    }
  });

  test("a create that is repeated after the upgrade is not carried out again", async () => {
    const { headers, body, response } = recorded.idempotent;
    const repeated = await send(recorded.secrets.shop, "/pets", { method: "POST", body, headers });
    expect(repeated.headers.get("idempotent-replayed")).toBe("true");
    expect(await repeated.text()).toBe(response);
  });

  test("an order that was placed before can be completed, and new identifiers follow the old ones", async () => {
    const { shop } = recorded.secrets;
    const patch = { method: "PATCH", body: '{"status":"completed"}' };
    expect((await send(shop, "/store/orders/1", patch)).status).toBe(200);
    const post = { method: "POST", body: '{"name":"New","categoryId":1}' };
    const pet = Object(await (await send(shop, "/pets", post)).json());
    expect(pet).toEqual(withServiceValues({ id: 137, name: "New", categoryId: 1 }, pet));
  });
}
