import { clientOf, HOST, message, ORIGIN } from "../message.ts";
import type { Action, Scenario } from "../play.ts";
import type { Server } from "../server.ts";

const { get, head, post } = clientOf("free");
const daily = clientOf("daily");
const banned = clientOf("banned");

/** Strikes count from the millisecond after the first 429. */
const wait: Action = () => Bun.sleep(5);

/** The server learns of all changes in their order, so of the others before the last one. */
async function changeKeys(server: Server): Promise<void> {
  await server.changeKey("moved", "set-plan", "business");
  await server.changeKey("banned", "unban");
  await server.changeKey("revoked", "revoke");
  const headers = { Authorization: `Bearer ${server.secret("revoked")}`, "X-Forwarded-For": "203.0.113.9" };
  for (let status = 0; status !== 401; await Bun.sleep(100)) {
    ({ status } = await fetch(`http://127.0.0.1:${server.port}/v1/pets`, { headers }));
  }
}

const from = (address: string, ...headers: string[]) =>
  message("GET /v1/pets HTTP/1.1", [HOST, `X-Forwarded-For: ${address}`, ...headers]);

const SETTINGS =
  "--ban-strikes 4 --ban-grace 0 --free-limits 3/100 --pro-limits 100/2 --anonymous-limits 2/50".split(" ");

/** Limits that are used up, strikes and bans. */
export const limits: Scenario = {
  keys: {
    free: ["--plan", "free"],
    daily: ["--plan", "pro"],
    banned: ["--plan", "free"],
    moved: ["--plan", "free"],
    revoked: ["--plan", "free"],
    equal: ["--plan", "enterprise", "--per-minute", "2", "--per-day", "2"],
  },
  flags: ["--public-url", ORIGIN, "--trust-proxy", "127.0.0.1", ...SETTINGS],
  steps: [
    ["limits 200: the first of three", get("/pets")],
    ["limits 200: the second of three", get("/pets")],
    ["limits 404: the last of three", get("/nothing")],
    ["rate_limited 429: the fourth of three", get("/pets")],
    wait,
    ["HEAD rate_limited 429: no body", head("/pets")],
    ["rate_limited 429: a write", post("/pets", { name: "Rex", categoryId: 1 })],
    ["rate_limited 429: a path that does not exist", get("/nothing", "Connection: close")],

    ["limits 200: a day's first of two", daily.get("/pets")],
    ["limits 200: a day's second of two", daily.get("/pets")],
    ["rate_limited 429: the day's limit", daily.get("/pets")],
    ["limits 200: minute and day are equal, so the day's is reported", clientOf("equal").get("/pets")],

    ["limits 200: before a ban, the first", banned.get("/pets")],
    ["limits 204: before a ban, the second", banned.options("/pets")],
    ["limits 405: before a ban, the third", banned.bare("DELETE", "/pets")],
    ["rate_limited 429: the first one, which is no strike", banned.get("/pets")],
    wait,
    ["rate_limited 429: the first strike", banned.get("/pets")],
    ["rate_limited 429: the second strike", banned.get("/pets")],
    ["rate_limited 429: the third strike", banned.get("/pets")],
    ["key_banned 429: the fourth strike", banned.get("/pets")],
    ["key_banned 429: during the ban", banned.post("/pets", { name: "Rex", categoryId: 1 })],
    ["HEAD key_banned 429: during the ban", banned.head("/pets")],
    ["rate_limited 429: another key is not banned", daily.get("/pets")],

    ["limits 200: a key before it is moved to another plan", clientOf("moved").get("/pets")],
    ["limits 200: a key before it is revoked", clientOf("revoked").get("/pets")],
    changeKeys,
    ["limits 200: a key after it was moved to another plan", clientOf("moved").get("/pets")],
    ["invalid_api_key 401: a key after it was revoked", clientOf("revoked").get("/pets")],
    ["rate_limited 429: a ban that was lifted leaves the limit", banned.get("/pets")],

    ["missing_api_key 401: by the address that a proxy names", from("203.0.113.1")],
    ["missing_api_key 401: the same address with a port", from("203.0.113.1:5000")],
    ["rate_limited 429: the address has used up its limit", from("203.0.113.1")],
    ["rate_limited 429: an invalid key from that address", from("203.0.113.1", "Authorization: Bearer abc")],
    wait,
    ["rate_limited 429: an address gets no strikes", from("203.0.113.1")],
    ["rate_limited 429: an address gets no strikes, once more", from("203.0.113.1")],
    ["rate_limited 429: an address is not banned", from("203.0.113.1")],
    ["missing_api_key 401: another address", from("203.0.113.2")],
    ["missing_api_key 401: the last address counts", from("203.0.113.1, 203.0.113.3")],
    ["missing_api_key 401: IPv6", from("2001:db8::1")],
    ["missing_api_key 401: IPv6, the same /64", from("[2001:db8:0:0:1::2]:443")],
    ["rate_limited 429: IPv6, the same /64", from("2001:0DB8::3")],
    ["missing_api_key 401: IPv6, another /64", from("2001:db8:0:1::1")],
    ["missing_api_key 401: IPv4 in IPv6 is IPv4", from("::ffff:203.0.113.2")],
    ["rate_limited 429: IPv4 in IPv6 is IPv4", from("203.0.113.2")],
    ["missing_api_key 401: what is no address is the proxy's", from("unknown")],
    [
      "limits 200: a key from an address that has used up its limit",
      clientOf("moved").get("/pets", "X-Forwarded-For: 203.0.113.1"),
    ],
  ],
};
