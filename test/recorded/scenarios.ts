import { addPetsAndOrders } from "./fixtures.ts";
import type { Scenario } from "./play.ts";
import { admin } from "./requests/admin.ts";
import { http } from "./requests/http.ts";
import { keys } from "./requests/keys.ts";
import { limits } from "./requests/limits.ts";
import { listings } from "./requests/listings.ts";
import { orders } from "./requests/orders.ts";
import { shutdown, staging, waits } from "./requests/others.ts";
import { pets } from "./requests/pets.ts";

/** A server with its defaults. */
const main: Scenario = {
  keys: {
    main: {},
    other: {},
    lister: {},
    free: { plan: "free" },
    pro: { plan: "pro" },
    enterprise: { plan: "enterprise", limits: { perMinute: 5_000, perDay: 70_000 } },
    reader: { access: "read" },
    revoked: {},
    expired: { expiresAt: Date.UTC(2026, 10, 1) },
  },
  async prepare(server) {
    await addPetsAndOrders(server);
    const { adapters, by } = server;
    await adapters.keys.updateKey(server.idOfKey("revoked"), { revokedAt: by.at }, by);
  },
  steps: [...pets, ...orders, ...listings, ...keys, ...http],
};

/** Every request of the record. Each scenario has a server of its own. */
export const SCENARIOS: readonly Scenario[] = [main, limits, staging, waits, shutdown, admin];
