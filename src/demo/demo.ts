import { openAdapters } from "../adapters.ts";
import { serveOn } from "../app.ts";
import type { Config } from "../config/config.ts";
import { isKeyFailure, KeyManagement } from "../domain/key-management.ts";
import type { Clock } from "../domain/ports.ts";
import type { Log } from "../log.ts";
import { DEMO_CLIENTS, type DemoClient, type DemoKey } from "./clients.ts";
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

const PETS = 120;
const CONCURRENT_CREATES = 20;

/** Starts a server on new data, fills it, and lets clients use it until it is disposed of. */
export async function startDemo(config: Config, { clock, log }: { clock: Clock; log: Log }): Promise<Demo> {
  const adapters = await openAdapters(config, clock, log);
  const app = await serveOn(adapters, config, { clock, log });
  try {
    const { keys, usageHistory } = adapters;
    const actor = { kind: "command line", name: "petstore demo" } as const;
    const management = new KeyManagement({ keys, clock, environment: config.environment, actor });
    const { secret } = await createKey(management, {
      name: "Your key",
      plan: "pro",
      labels: [],
      access: "write",
    });
    const demoKeys: DemoKey[] = [];
    for (const client of DEMO_CLIENTS) demoKeys.push(await createDemoKey(management, client));
    await addEarlierUsage(usageHistory, demoKeys, clock.now());
    await createPets(app.url, demoKeys.find(({ client }) => client.habit === "imports")?.secret ?? secret);
    const traffic = new Traffic({ url: app.url, keys: demoKeys, pets: PETS });
    return {
      url: app.url,
      consoleUrl: app.admin?.signInUrl,
      secret,
      async [Symbol.asyncDispose]() {
        await traffic.stop();
        await app.close();
      },
    };
  } catch (error) {
    await app.close();
    throw error;
  }
}

async function createKey(management: KeyManagement, draft: Parameters<KeyManagement["create"]>[0]) {
  const issued = await management.create(draft);
  if (isKeyFailure(issued)) throw new Error(issued.message);
  return issued;
}

async function createDemoKey(management: KeyManagement, client: DemoClient): Promise<DemoKey> {
  const { name, owner, notes, labels, plan, limits, access } = client;
  const draft = {
    name,
    owner,
    labels,
    plan,
    access,
    ...(notes !== undefined && { notes }),
    ...(limits !== undefined && { limits }),
  };
  const { key, secret } = await createKey(management, draft);
  if (client.perSecond === 0) await management.revoke(key.id);
  return { client, keyId: key.id, secret };
}

async function createPets(url: string, secret: string): Promise<void> {
  const numbers = Array.from({ length: PETS }, (_, index) => index + 1);
  for (let start = 0; start < PETS; start += CONCURRENT_CREATES) {
    await Promise.all(
      numbers.slice(start, start + CONCURRENT_CREATES).map((number) => createPet(url, secret, number)),
    );
  }
}

async function createPet(url: string, secret: string, number: number): Promise<void> {
  const headers = { Authorization: `Bearer ${secret}`, "Content-Type": "application/json" };
  const { status } = await fetch(`${url}/pets`, { method: "POST", headers, body: samplePet(number) });
  if (status !== 201) throw new Error(`a sample pet was not created: ${status}`);
}
