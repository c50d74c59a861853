import { parseIpNetwork } from "../../../src/runtime/ip-network.ts";
import { clientOf, HOST, message } from "../message.ts";
import type { Action, Scenario } from "../play.ts";

const minute = clientOf("minute");
const day = clientOf("day");
const banned = clientOf("banned");

const wait =
  (ms: number): Action =>
  ({ clock }) =>
    clock.advance(ms);

const from = (address: string, ...headers: string[]) =>
  message("GET /v1/pets HTTP/1.1", [HOST, `X-Forwarded-For: ${address}`, ...headers]);

const ENTERPRISE = { plan: "enterprise" } as const;

/** Limits that are used up, strikes and bans. Counters are recorded, so each limit has rows and a key of its own. */
export const limits: Scenario = {
  keys: {
    minute: { ...ENTERPRISE, limits: { perMinute: 2, perDay: 50 } },
    day: { ...ENTERPRISE, limits: { perMinute: 20, perDay: 1 } },
    equal: { ...ENTERPRISE, limits: { perMinute: 2, perDay: 2 } },
    banned: { ...ENTERPRISE, limits: { perMinute: 1, perDay: 50 } },
  },
  config: {
    trustedProxies: [parseIpNetwork("127.0.0.1/32")].filter((network) => network !== undefined),
  },
  policy: {
    plans: { anonymous: { perMinute: 2, perDay: 50 } },
    ban: { strikes: 2, graceMs: 0, lengthMs: 90_000, maxLengthMs: 180_000 },
  },
  steps: [
    ["limits 200: the first of two", minute.get("/pets")],
    ["limits 404: the second of two", minute.get("/nothing")],
    ["rate_limited 429: the third of two", minute.get("/pets")],
    ["HEAD rate_limited 429: no body", minute.head("/pets")],
    ["rate_limited 429: a write to a path that does not exist", minute.post("/nothing", {})],
    ["limits 200: a day's only one", day.get("/pets")],
    ["rate_limited 429: the day's limit", day.get("/pets")],
    ["limits 200: minute and day are equal, so the day's is reported", clientOf("equal").get("/pets")],

    ["limits 204: before a ban", banned.options("/pets")],
    ["rate_limited 429: the first one, which is no strike", banned.get("/pets")],
    wait(1_500),
    ["rate_limited 429: the first strike, rounded up to a second", banned.get("/pets")],
    wait(1),
    ["key_banned 429: the second strike", banned.get("/pets")],
    ["HEAD key_banned 429: during the ban", banned.head("/pets")],
    wait(90_000),
    ["limits 200: after the ban", banned.get("/pets")],

    ["missing_api_key 401: by the address that a proxy names", from("203.0.113.1")],
    ["invalid_api_key 401: the same address", from("203.0.113.9, 203.0.113.1", "Authorization: Bearer abc")],
    ["rate_limited 429: the address has used up its limit", from("203.0.113.1")],
    [
      "limits 200: a key from an address that has used up its limit",
      minute.get("/pets", "X-Forwarded-For: 203.0.113.1"),
    ],
  ],
};
