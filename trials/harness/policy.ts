import { openStores } from "../../src/adapters/open-stores.ts";
import { parseArguments } from "../../src/cli/arguments.ts";
import { STORAGE_OPTIONS } from "../../src/config/options.ts";
import { parseOptions } from "../../src/config/parse-options.ts";
import { dataLocationOf } from "../../src/config/storage.ts";
import type { DataLocation } from "../../src/data-location.ts";
import type { PolicyChange } from "../../src/domain/policy.ts";

const MANY = { perMinute: 1_000_000, perDay: 100_000_000 };
/** No load of a trial uses it up. */
export const UNLIMITED: PolicyChange = { plans: { free: MANY, business: MANY, anonymous: MANY } };

/**
 * Stores limits and ban rules for servers that start later, in a database that is made if it is missing. `storage` are
 * the flags that name it.
 */
export async function storePolicy(storage: readonly string[], change: PolicyChange): Promise<void> {
  const { flags } = parseArguments(storage, STORAGE_OPTIONS);
  await storePolicyIn(dataLocationOf(parseOptions(STORAGE_OPTIONS, flags, {})), change);
}

export async function storePolicyIn(location: DataLocation, change: PolicyChange): Promise<void> {
  const stores = await openStores(location, { use: "create" });
  await stores.policies.updatePolicy(change, { actor: { kind: "command line" }, at: Date.now() });
  await stores.close();
}
