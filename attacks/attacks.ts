import type { Attack, Engines } from "./attack.ts";
import { jsonBodies } from "./json-bodies.ts";
import { largeHeads } from "./large-heads.ts";
import { manyAddresses } from "./many-addresses.ts";
import { pipelinedPages } from "./pipelined-pages.ts";
import { pipelinedRejections } from "./pipelined-rejections.ts";
import { silentConnections } from "./silent-connections.ts";
import { slowHeads } from "./slow-heads.ts";
import { slowReaders } from "./slow-readers.ts";
import { unknownKeys } from "./unknown-keys.ts";
import { valkeyQueue } from "./valkey-queue.ts";

/** What the other rows are compared with. */
const noAttack: Attack = {
  name: "none",
  title: "no attack",
  engines: ["sqlite", "shared"],
  bars: { p99Ms: 50 },
  run: async () => {},
};

export const ATTACKS: readonly Attack[] = [
  noAttack,
  jsonBodies,
  silentConnections,
  largeHeads,
  pipelinedPages,
  pipelinedRejections,
  unknownKeys,
  slowHeads,
  slowReaders,
  manyAddresses,
  valkeyQueue,
];

export function attacksOn(engines: Engines): readonly Attack[] {
  return ATTACKS.filter((attack) => (attack.engines ?? ["sqlite"]).includes(engines));
}
