import type { Environment } from "../domain/api-keys.ts";
import { type IssuedKey, isKeyFailure, type KeyDraft, KeyManagement } from "../domain/key-management.ts";
import type { Clock, KeyStore } from "../domain/ports.ts";
import { DAY_MS } from "../domain/rate-limit.ts";
import { DEMO_CLIENTS, type DemoClient, type DemoKey } from "./clients.ts";

export interface DemoKeyOptions {
  readonly keys: KeyStore;
  readonly clock: Clock;
  readonly environment: Environment;
}

const REVOKED_DAYS_AGO = 12;

/** Creates the keys of the clients as if that had been done long ago, and one for whoever runs the demo. */
export async function createDemoKeys(
  options: DemoKeyOptions,
): Promise<{ clientKeys: readonly DemoKey[]; secret: string }> {
  const clientKeys: DemoKey[] = [];
  for (const client of DEMO_CLIENTS) {
    const { key, secret } = await create(managementAt(client.createdDaysAgo, options), draftOf(client));
    clientKeys.push({ client, keyId: key.id, secret });
  }
  for (const { client, keyId } of clientKeys) {
    if (client.perSecond === 0) await managementAt(REVOKED_DAYS_AGO, options).revoke(keyId);
  }
  const { secret } = await create(managementAt(0, options), { name: "Your key", plan: "pro" });
  return { clientKeys, secret };
}

function managementAt(daysAgo: number, { keys, clock, environment }: DemoKeyOptions): KeyManagement {
  const past = { now: () => clock.now() - daysAgo * DAY_MS };
  return new KeyManagement({
    keys,
    clock: past,
    environment,
    actor: { kind: "command line", name: "petstore demo" },
  });
}

async function create(management: KeyManagement, draft: KeyDraft): Promise<IssuedKey> {
  const issued = await management.create(draft);
  if (isKeyFailure(issued)) throw new Error(issued.message);
  return issued;
}

function draftOf({ name, owner, notes, labels, plan, limits, access }: DemoClient): KeyDraft {
  const optional = { ...(notes !== undefined && { notes }), ...(limits !== undefined && { limits }) };
  return { name, owner, labels, plan, access, ...optional };
}
