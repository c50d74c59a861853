import type { Attack } from "./attack.ts";
import { holdConnections } from "./connections.ts";
import { requestWithUnknownKey } from "./unknown-keys.ts";

/**
 * No address comes near its limit, and each has a plausible key: the servers have to look up every key, and must not
 * store anything about an address in Valkey.
 */
export const manyAddresses: Attack = {
  name: "many-addresses",
  title: "unknown keys, each from another address",
  engines: ["shared"],
  bars: { p99Ms: 50, valkeyEntries: 3, transactionsPerSecond: 6_000 },
  run: (target, signal) =>
    holdConnections(
      target,
      {
        count: 200,
        perAddress: 1,
        reconnects: "from a new address",
        onOpen(socket) {
          socket.once("data", () => socket.end());
          socket.write(requestWithUnknownKey());
        },
      },
      signal,
    ),
};
