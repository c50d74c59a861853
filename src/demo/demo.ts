import { type Adapters, openAdapters } from "../adapters.ts";
import { type App, serveOn } from "../app.ts";
import { Petstore } from "../client/index.ts";
import type { Config } from "../config/config.ts";
import { type Environment, generateSecret, toNewSecret } from "../domain/api-keys.ts";
import type { Attribution } from "../domain/audit.ts";
import type { Clock, KeyStore, UsageHistoryStore } from "../domain/ports.ts";
import { DAY_MS } from "../domain/rate-limit.ts";
import { HOUR_MS, type KeyCounts, type OperationId, intervalStart } from "../domain/usage-history.ts";
import type { Log } from "../observe/log.ts";
import type { Setting } from "../operator/operations.ts";
import { DEMO_CLIENTS, type DemoClient, type DemoKey, HABITS, samplePet, startTraffic } from "./traffic.ts";

const REVOKED_DAYS_AGO = 12;

/** Creates the keys of the clients with earlier times of creation, and one key for the user of the demo. */
async function createDemoKeys(keys: KeyStore, clock: Clock, environment: Environment) {
  const attributionAt = (daysAgo: number): Attribution => ({
    actor: { kind: "command line", name: "petstore demo" },
    at: clock.now() - daysAgo * DAY_MS,
  });
  const create = async (draft: DemoClient["key"], daysAgo: number) => {
    const by = attributionAt(daysAgo);
    const secret = generateSecret(environment);
    const { id } = await keys.createKey({ ...draft, createdAt: by.at }, toNewSecret(secret), by);
    return { keyId: id, secret };
  };
  const clientKeys: DemoKey[] = [];
  for (const client of DEMO_CLIENTS)
    clientKeys.push({ client, ...(await create(client.key, client.createdDaysAgo)) });
  for (const { client, keyId } of clientKeys) {
    const by = attributionAt(REVOKED_DAYS_AGO);
    if (client.perSecond === 0) await keys.updateKey(keyId, { revokedAt: by.at }, by);
  }
  const { secret } = await create({ name: "Your key", plan: "pro" }, 0);
  return { clientKeys, secret };
}

export interface Demo extends AsyncDisposable {
  /** The base URL of the API. */
  readonly url: string;
  /** The URL of the console, with a code to sign in with. */
  readonly consoleUrl: string | undefined;
  /** The secret of a key that no client of the demo uses. */
  readonly secret: string;
}

interface DemoOptions {
  readonly clock: Clock;
  readonly log: Log;
  /** The settings that the console shows. */
  readonly shownSettings: readonly Setting[];
}

const PETS = 120;

/** Starts a server on new data, fills it, and runs clients until it is disposed of. */
export async function startDemo(config: Config, options: DemoOptions): Promise<Demo> {
  const adapters = await openAdapters(config, options.clock, options.log);
  let app: App | undefined;
  try {
    app = await serveOn(adapters, config, options);
    return await fill(app, adapters, { clock: options.clock, environment: config.environment });
  } catch (error) {
    await (app ?? adapters).close();
    throw error;
  }
}

async function fill(
  app: App,
  { keys, usageHistory }: Adapters,
  { clock, environment }: Pick<Config, "environment"> & Pick<DemoOptions, "clock">,
): Promise<Demo> {
  const { url } = app;
  const { clientKeys, secret } = await createDemoKeys(keys, clock, environment);
  await addEarlierUsage(usageHistory, clientKeys, clock.now());
  const key = clientKeys.find(({ client }) => client.habit === "imports")?.secret ?? secret;
  const { pets } = new Petstore({ key, baseUrl: url });
  await Promise.all(Array.from({ length: PETS }, (_, index) => pets.create(samplePet(index + 1))));
  const stopTraffic = startTraffic({ url, keys: clientKeys, pets: PETS });
  return {
    url,
    consoleUrl: app.admin && withShortRange(await app.admin.createSignInUrl()),
    secret,
    async [Symbol.asyncDispose]() {
      stopTraffic();
      await app.close();
    },
  };
}

/** Selects a short range, so that the plots fill within minutes instead of an hour. */
function withShortRange(consoleUrl: string): string {
  const url = new URL(consoleUrl);
  url.searchParams.set("range", "15m");
  return url.href;
}

const DAYS = 60;

/** Adds two months of earlier usage: one for the plots of the console, and one for comparison. */
async function addEarlierUsage(
  usageHistory: Pick<UsageHistoryStore, "addUsage">,
  keys: readonly DemoKey[],
  now: number,
): Promise<void> {
  const used = keys.filter(({ client }) => client.earlierPerHour > 0);
  const current = intervalStart("hour", now);
  for (let sequence = 1; sequence <= DAYS * 24; sequence++) {
    const hour = current - (DAYS * 24 + 1 - sequence) * HOUR_MS;
    const created = used.filter(({ client }) => hour > now - client.createdDaysAgo * DAY_MS);
    const counts = created.map(({ client, keyId }) => countsOf(client, keyId, hour));
    await usageHistory.addUsage({ writer: "demo", sequence, hour, keys: counts });
  }
}

function countsOf(client: DemoClient, keyId: number, hour: number): KeyCounts {
  const requests = client.earlierPerHour * activityAt(hour) * (0.8 + 0.4 * Math.random());
  const limited = client.key.plan === "free" ? Math.round(requests * 0.3 * Math.random()) : 0;
  const byOperation = Object.entries(HABITS[client.habit]).map(([operation, part]) => {
    const admitted = Math.round((requests - limited) * part);
    return { operation: operation as OperationId, admitted, errors: Math.round(admitted * 0.02) };
  });
  const admitted = byOperation.reduce((sum, each) => sum + each.admitted, 0);
  const errors = byOperation.reduce((sum, each) => sum + each.errors, 0);
  return { keyId, admitted, limited, banned: 0, errors, lastUsedAt: hour + HOUR_MS - 1, byOperation };
}

/** The activity at a time, from 0 to 1. It is low at night, and lower on Saturdays and Sundays. */
function activityAt(time: number): number {
  const date = new Date(time);
  const daily = 0.55 - 0.45 * Math.cos(((date.getUTCHours() - 3) / 24) * 2 * Math.PI);
  return [0, 6].includes(date.getUTCDay()) ? daily * 0.6 : daily;
}
