import type { Scenario } from "./play.ts";
import { failures, outage, shutdown } from "./requests/failures.ts";
import { http } from "./requests/http.ts";
import { keys, staging } from "./requests/keys.ts";
import { limits } from "./requests/limits.ts";
import { listings } from "./requests/listings.ts";
import { orders } from "./requests/orders.ts";
import { pets } from "./requests/pets.ts";
import { removal, waits } from "./requests/times.ts";

/** Their responses are the same on every engine. */
export const onAnyEngine: readonly Scenario[] = [pets, listings, orders, keys, limits];

/** Every request of the record. Each scenario has a server of its own; the longest ones begin early. */
export const scenarios: readonly Scenario[] = [
  pets,
  listings,
  waits,
  failures,
  orders,
  keys,
  limits,
  staging,
  http,
  outage,
  removal,
  shutdown,
];
