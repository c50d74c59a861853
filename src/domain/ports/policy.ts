import type { Awaitable } from "../../runtime/awaitable.ts";
import type { Attribution } from "../audit.ts";
import type { PlanName } from "../plans.ts";
import type { Policy, PolicyChange } from "../policy.ts";

/**
 * The policy: limits and ban rules. A change increments the revision of the keys, so that servers see it, and writes
 * its audit entries in its own transaction. What changes nothing writes nothing.
 */
export interface PolicyStore {
  readPolicy(): Awaitable<Policy>;
  /** Changes the given values. Returns the policy afterwards. */
  updatePolicy(change: PolicyChange, by: Attribution): Promise<Policy>;
  /** How many keys that are not revoked have each plan. A plan without keys is missing. */
  countKeys(): Awaitable<Readonly<Record<PlanName, number>>>;
}
