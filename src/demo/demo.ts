import { type Adapters, openAdapters } from "../adapters.ts";
import type { Setting } from "../admin/operations.ts";
import { type App, serveOn } from "../app.ts";
import type { Config } from "../config/config.ts";
import type { Clock } from "../domain/ports.ts";
import type { Log } from "../log.ts";
import { createDemoKeys } from "./demo-keys.ts";
import { addEarlierUsage } from "./earlier-usage.ts";
import { samplePet } from "./sample-pets.ts";
import { Traffic } from "./traffic.ts";

export interface Demo extends AsyncDisposable {
  /** The base URL of the API. */
  readonly url: string;
  /** The URL of the console, with its token. */
  readonly consoleUrl: string | undefined;
  /** The secret of a key that no client of the demo uses. */
  readonly secret: string;
}

export interface DemoOptions {
  readonly clock: Clock;
  readonly log: Log;
  /** For the console. */
  readonly shownSettings: readonly Setting[];
}

const PETS = 120;
const CONCURRENT_CREATES = 20;

/** Starts a server on new data, fills it, and lets clients use it until it is disposed of. */
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
  const { clientKeys, secret } = await createDemoKeys({ keys, clock, environment });
  await addEarlierUsage(usageHistory, clientKeys, clock.now());
  await createPets(url, clientKeys.find(({ client }) => client.habit === "imports")?.secret ?? secret);
  const traffic = new Traffic({ url, keys: clientKeys, pets: PETS });
  return {
    url,
    consoleUrl: app.admin && withShortRange(app.admin.signInUrl),
    secret,
    async [Symbol.asyncDispose]() {
      await traffic.stop();
      await app.close();
    },
  };
}

/** The plots are full after minutes instead of an hour. */
function withShortRange(consoleUrl: string): string {
  const url = new URL(consoleUrl);
  url.searchParams.set("range", "15m");
  return url.href;
}

async function createPets(url: string, secret: string): Promise<void> {
  const numbers = Array.from({ length: PETS }, (_, index) => index + 1);
  for (let start = 0; start < PETS; start += CONCURRENT_CREATES) {
    const batch = numbers.slice(start, start + CONCURRENT_CREATES);
    await Promise.all(batch.map((number) => createPet(url, secret, number)));
  }
}

async function createPet(url: string, secret: string, number: number): Promise<void> {
  const headers = { Authorization: `Bearer ${secret}`, "Content-Type": "application/json" };
  const { status } = await fetch(`${url}/pets`, { method: "POST", headers, body: samplePet(number) });
  if (status !== 201) throw new Error(`a sample pet was not created: ${status}`);
}
