import { RedisClient } from "bun";
import { afterAll, beforeAll, expect, test } from "bun:test";
import type { Subject } from "../../src/domain/rate-limit.ts";
import type { RateLimiter } from "../../src/domain/ports.ts";
import { limiterConformance } from "../conformance/limiter.ts";
import { startValkeyCluster, type ValkeyCluster } from "../../harness/valkey-cluster.ts";
import { openFallible, openOnValkey, openPatient, Turns } from "./valkey-opening.ts";

let cluster: ValkeyCluster;
let urls: string[];
beforeAll(async () => {
  cluster = await startValkeyCluster();
  urls = cluster.nodes.map(({ url }) => url);
}, 30_000);
afterAll(() => cluster.stop());

const FREE = { perMinute: 60, perDay: 1_000 };
/** Enough that every node has some. */
const SUBJECTS = Array.from({ length: 30 }, (_, i): Subject => `key:${i}`);

/** What each has left, all asked at once. */
async function askAll(rateLimiter: RateLimiter): Promise<number[]> {
  const decisions = await Promise.all(SUBJECTS.map(async (subject) => rateLimiter.decide(subject, FREE)));
  return decisions.map(({ remaining }) => remaining);
}

function send(node: RedisClient | undefined, command: string): Promise<unknown> | undefined {
  const [name = "", ...args] = command.split(" ");
  return node?.send(name, args);
}

const everyone = (remaining: number) => SUBJECTS.map(() => remaining);

limiterConformance(
  "on a cluster",
  openOnValkey(() => urls),
);

test("of 1,000 requests at once over two instances exactly 60 of each key are allowed", async () => {
  // Any host will do to find the others.
  const settings = { url: urls.slice(0, 1), prefix: "two:" };
  const instances = await Promise.all([openPatient(settings), openPatient(settings)]);
  const keys = SUBJECTS.slice(0, 5);
  const asked = instances.flatMap((each) =>
    keys.flatMap((key) =>
      Array.from({ length: 100 }, async () => ({ key, ...(await each.decide(key, FREE)) })),
    ),
  );
  const allowed = (await Promise.all(asked)).filter(({ outcome }) => outcome === "allowed");
  for (const key of keys) expect(allowed.filter((each) => each.key === key)).toHaveLength(60);
  await Promise.all(instances.map((each) => each.close()));
});

test("a slot that moves to another node keeps its counts, and nobody is turned to the fallback", async () => {
  const rateLimiter = await openPatient({ url: urls, prefix: "moved:" });
  expect(await askAll(rateLimiter)).toEqual(everyone(59));
  const nodes = urls.map((url) => new RedisClient(url));
  const key = "moved:{key:7}";
  const slot = Number(await send(nodes[0], `CLUSTER KEYSLOT ${key}`));
  const ids = await Promise.all(nodes.map((node) => send(node, "CLUSTER MYID")));
  const from = Math.floor((slot * 3) / 16_384);
  const to = (from + 1) % 3;

  await send(nodes[to], `CLUSTER SETSLOT ${slot} IMPORTING ${ids[from]}`);
  await send(nodes[from], `CLUSTER SETSLOT ${slot} MIGRATING ${ids[to]}`);
  await send(nodes[from], `MIGRATE 127.0.0.1 ${new URL(urls[to] ?? "").port} ${key} 0 5000`);
  expect(await askAll(rateLimiter)).toEqual(everyone(58));

  for (const node of [nodes[to], nodes[from]]) await send(node, `CLUSTER SETSLOT ${slot} NODE ${ids[to]}`);
  expect(await askAll(rateLimiter)).toEqual(everyone(57));
  for (const node of nodes) node.close();
  await rateLimiter.close();
});

test("one node frozen: nobody waits longer than 25 ms, and the cluster is back a second after it thaws", async () => {
  const turns = new Turns();
  const rateLimiter = await openFallible({ url: urls, prefix: "frozen:", onTurn: turns.onTurn });
  await askAll(rateLimiter);
  expect(turns.causes).toEqual([]);

  cluster.nodes[2]?.freeze();
  const start = performance.now();
  await askAll(rateLimiter);
  expect(performance.now() - start).toBeLessThan(100);
  expect(turns.told).toEqual(["lost"]);
  expect(rateLimiter.decide("key:1", FREE)).not.toBeInstanceOf(Promise);

  cluster.nodes[2]?.thaw();
  const thawed = performance.now();
  await turns.reach(2);
  expect(performance.now() - thawed).toBeLessThan(1_000);
  await rateLimiter.close();
});

test("one node lost: nothing fails, and the cluster is away until the node's keys are served again", async () => {
  const turns = new Turns();
  const rateLimiter = await openFallible({
    url: urls,
    prefix: "lost:",
    commandTimeoutMs: 250,
    onTurn: turns.onTurn,
  });
  expect(await askAll(rateLimiter)).toEqual(everyone(59));
  expect(turns.causes).toEqual([]);

  await cluster.nodes[1]?.kill();
  await askAll(rateLimiter);
  expect(turns.told).toEqual(["lost"]);
  expect(rateLimiter.decide("key:1", FREE)).toMatchObject({ outcome: "allowed" });

  await cluster.nodes[1]?.restart();
  await turns.reach(2);
  const left = await askAll(rateLimiter);
  // The nodes that stayed go on from where they stood; the one that was lost had written nothing down.
  expect(new Set(left)).toBeOneOf([new Set([57, 59]), new Set([58, 59])]);
  expect(turns.told).toEqual(["lost", "back"]);
  await rateLimiter.close();
}, 20_000);
