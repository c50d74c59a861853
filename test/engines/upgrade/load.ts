import { expect } from "bun:test";
import { audit } from "../../../trials/harness/api-client.ts";
import { SteadyLoad } from "../../../trials/harness/steady-load.ts";
import { until } from "../../timing.ts";

const PER_SECOND = 100;
/** So many attempts, with pauses that grow to 0.4 s, take longer than any restart. */
const MAX_ATTEMPTS = 200;
const CREATES = 20;

export function startLoad(urls: readonly string[], key: string): SteadyLoad {
  return new SteadyLoad({ urls, key, perSecond: PER_SECOND, maxAttempts: MAX_ATTEMPTS });
}

/** Resolves when the load has created some more pets. */
export async function untilMoreCreates(load: SteadyLoad): Promise<void> {
  const target = load.acknowledged.size + CREATES;
  await until(() => load.acknowledged.size >= target, 10_000);
}

export async function expectNothingLost(load: SteadyLoad, url: string, key: string): Promise<void> {
  await load.stop();
  expect(load.failures).toEqual([]);
  const { acknowledged, lost, duplicated } = await audit(url, key, load.acknowledged);
  expect({ lost, duplicated }).toEqual({ lost: [], duplicated: [] });
  expect(acknowledged).toBeGreaterThanOrEqual(2 * CREATES);
}
