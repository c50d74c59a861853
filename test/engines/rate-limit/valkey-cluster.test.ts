import { afterAll, describe, expect, test } from "bun:test";
import { inspect } from "node:util";
import type { RateLimiter } from "../../../src/domain/ports/rate-limiter.ts";
import { rateLimiterCases } from "../../conformance/rate-limiter-cases.ts";
import { createTestCase, FREE } from "../../conformance/rate-limiter-fixture.ts";
import { sendToValkey, startValkeyCluster } from "../../../trials/harness/valkey.ts";
import { key } from "../../subjects.ts";
import {
  openOnValkey,
  openWithFallback,
  openWithoutFallback,
  PATIENT,
  StateChanges,
} from "../../rate-limit/open-valkey.ts";

const cluster = await startValkeyCluster();
const urls = cluster.nodes.map(({ url }) => url);
afterAll(() => cluster.stop());

/** Enough for every node to have some. */
const SUBJECTS = Array.from({ length: 30 }, (_, i) => key(i));

/** What each subject has remaining after one more request, all at once. */
async function decideAll(rateLimiter: RateLimiter): Promise<number[]> {
  const decisions = await Promise.all(SUBJECTS.map(async (subject) => rateLimiter.decide(subject, FREE)));
  return decisions.map(({ remaining }) => remaining);
}

function send(node: number, command: string): Promise<string> {
  const [name = "", ...args] = command.split(" ");
  return sendToValkey(urls[node] ?? "", name, ...args);
}

const all = (remaining: number) => SUBJECTS.map(() => remaining);

test("one URL alone: the server says that it is a node of a cluster", async () => {
  const changes = new StateChanges();
  const settings = { ...PATIENT, url: urls[0] ?? "", prefix: "alone:", onStateChange: changes.onStateChange };
  const rateLimiter = await openWithFallback(settings);
  await decideAll(rateLimiter);
  expect(inspect(changes.causes[0])).toMatch(
    /(?:MOVED|CROSSSLOT) .*: this is a node of a cluster, so repeat --limits-url for at least one more of its nodes/,
  );
  await rateLimiter.close();
});

/** The scripts are those of a single server; how they get their keys is not. */
describe("on a cluster", () => {
  rateLimiterCases(createTestCase(openOnValkey(() => urls)));
});

test("a slot that moves to another node keeps its counts, and the fallback decides nothing", async () => {
  const rateLimiter = await openWithoutFallback({ url: urls, prefix: "moved:" });
  expect(await decideAll(rateLimiter)).toEqual(all(59));
  const name = "moved:{key:7}";
  const slot = Number(await send(0, `CLUSTER KEYSLOT ${name}`));
  const ids = await Promise.all([0, 1, 2].map((node) => send(node, "CLUSTER MYID")));
  const from = Math.floor((slot * 3) / 16_384);
  const to = (from + 1) % 3;

  await send(to, `CLUSTER SETSLOT ${slot} IMPORTING ${ids[from]}`);
  await send(from, `CLUSTER SETSLOT ${slot} MIGRATING ${ids[to]}`);
  await send(from, `MIGRATE 127.0.0.1 ${new URL(urls[to] ?? "").port} ${name} 0 5000`);
  expect(await decideAll(rateLimiter)).toEqual(all(58));

  for (const node of [to, from]) await send(node, `CLUSTER SETSLOT ${slot} NODE ${ids[to]}`);
  expect(await decideAll(rateLimiter)).toEqual(all(57));
  await rateLimiter.close();
});

test("one node killed: no request fails, and the cluster is unavailable until its keys are served again", async () => {
  const changes = new StateChanges();
  const { onStateChange } = changes;
  const rateLimiter = await openWithFallback({ ...PATIENT, url: urls, prefix: "lost:", onStateChange });
  expect(await decideAll(rateLimiter)).toEqual(all(59));
  expect(changes.causes).toEqual([]);

  await cluster.nodes[1]?.kill();
  await decideAll(rateLimiter);
  expect(changes.states[0]).toBe("unavailable");
  expect(await rateLimiter.decide(key(1), FREE)).toMatchObject({ outcome: "allowed" });

  await cluster.nodes[1]?.restart();
  // Each cause of the outage is reported.
  for (let count = 2; changes.states.at(-1) !== "available"; count++) await changes.reach(count);
  const remaining = await decideAll(rateLimiter);
  // The other nodes go on with their counts, and may have counted the lost batch too. The killed one had saved nothing.
  expect(new Set(remaining).isSubsetOf(new Set([55, 56, 57, 58]))).toBe(true);
  expect([...new Set(changes.states)]).toEqual(["unavailable", "available"]);
  await rateLimiter.close();
});
