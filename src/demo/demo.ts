import { openStores } from "../adapters/open-stores.ts";
import type { App } from "../app.ts";
import type { DataLocation } from "../data-location.ts";
import { generateSecret, toNewSecret } from "../domain/secrets.ts";
import type { Environment } from "../domain/environments.ts";
import type { Attribution } from "../domain/audit.ts";
import type { KeyStore } from "../domain/ports/keys.ts";
import type { Clock } from "../domain/ports/clock.ts";
import { DAY_MS } from "../text/time-units.ts";
import type { Scheduler } from "../runtime/scheduler.ts";
import { openQuotaStore } from "../store/sqlite/quota-store.ts";
import { DEMO_CLIENTS, type DemoClient, OPEN_MS } from "./clients.ts";
import { earlierRequests, liveFigures, usageBatches } from "./history.ts";
import { addPetsAndOrders, type DemoKey, startTraffic } from "./traffic.ts";

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
  /** Starts the server. */
  readonly startApp: () => Promise<App>;
  /** Runs the clients. */
  readonly scheduler?: Scheduler;
}

/** Starts a server on new data, fills it, and runs clients until it is disposed of. */
export async function startDemo(data: DataLocation, options: DemoOptions): Promise<Demo> {
  const { clientKeys: keys, secret, clients, now } = await createSampleData(data, options.clock);
  const app = await options.startApp();
  try {
    const { url } = app;
    app.metrics.live.fillPast(OPEN_MS, liveFigures(clients, now));
    await addPetsAndOrders(url, keys);
    const consoleUrl = app.admin && (await app.admin.createSignInUrl());
    const stopTraffic = startTraffic({ ...options, url, keys });
    return {
      url,
      consoleUrl,
      secret,
      async [Symbol.asyncDispose]() {
        await stopTraffic();
        await app.close();
      },
    };
  } catch (error) {
    await app.close();
    throw error;
  }
}

/** Creates keys, their usage and their quotas, as a server that has stopped would leave them. */
async function createSampleData(data: DataLocation, clock: Clock) {
  const { environment, directory } = data;
  const stores = await openStores(data);
  try {
    const created = await createDemoKeys(stores.keys, clock, environment);
    const now = clock.now();
    const clients = created.clientKeys.map((key) => ({ ...key, ...earlierRequests(key.client, now) }));
    for (const batch of usageBatches(clients, now)) await stores.usageHistory.addUsage(batch);
    const quotas = openQuotaStore(directory.files.quotas);
    quotas.save(clients.map(({ keyId, quota }) => [{ kind: "key", id: keyId }, quota]));
    quotas.close();
    return { ...created, clients, now };
  } finally {
    await stores.close();
  }
}
