/*
 * Pauses and continues Valkey at random, in a process of its own, because one that also sends requests would be late.
 * Writes the longest time, in milliseconds, from a pause until Valkey replied again.
 */

import { RedisClient } from "bun";
import { freezeTree, thawTree } from "../harness/processes.ts";
import { Random } from "../harness/random.ts";

const [url, pid, pauses, seed] = process.argv.slice(2);
const random = new Random(Number(seed));
const client = new RedisClient(url, { autoReconnect: false });
await client.connect();
let longestMs = 0;
for (let count = 0; count < Number(pauses); count++) {
  const ms = random.between(30, 400);
  const stoppedAt = performance.now();
  freezeTree(Number(pid));
  await Bun.sleep(ms);
  thawTree(Number(pid));
  await client.ping();
  longestMs = Math.max(longestMs, performance.now() - stoppedAt);
  await Bun.sleep(ms / 2);
}
client.close();
process.stdout.write(`${Math.round(longestMs)}\n`);
