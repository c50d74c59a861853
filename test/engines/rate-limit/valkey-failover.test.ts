import { afterAll, expect, test } from "bun:test";
import { FREE } from "../../conformance/rate-limiter-fixture.ts";
import { sendToValkey, startValkeyCluster } from "../../../trials/harness/valkey.ts";
import { openWithFallback, StateChanges } from "../../rate-limit/open-valkey.ts";
import { key } from "../../subjects.ts";

/** Enough for every node to have some. */
const SUBJECTS = Array.from({ length: 12 }, (_, i) => key(i));

const cluster = await startValkeyCluster({ hasReplicas: true });
const urls = cluster.nodes.map(({ url }) => url);
afterAll(() => cluster.stop());

test("a primary is killed and its replica takes over: no key gets twice its limit, on whichever node it is", async () => {
  const changes = [new StateChanges(), new StateChanges()];
  const limiters = await Promise.all(
    changes.map(({ onStateChange }) => openWithFallback({ url: urls, prefix: "failover:", onStateChange })),
  );
  const allowed = SUBJECTS.map(() => 0);
  const send = (count: number) =>
    Promise.all(
      limiters.flatMap((limiter) =>
        SUBJECTS.map(async (subject, i) => {
          for (let sent = 0; sent < count; sent++) {
            const { outcome } = await limiter.decide(subject, FREE);
            if (outcome === "allowed") allowed[i] = (allowed[i] ?? 0) + 1;
          }
        }),
      ),
    );
  await send(10);
  for (const url of urls.slice(0, 3)) await sendToValkey(url, "WAIT", "1", "5000");
  await cluster.nodes[0]?.kill();
  while (changes.some(({ states }) => states.at(-1) !== "available")) {
    await send(1);
    await Bun.sleep(50);
  }
  await send(60);
  // Requests whose reply was lost may count twice.
  for (const count of allowed) expect(count).toBeWithin(40, 2 * 60);
  for (const limiter of limiters) await limiter.close();
}, 60_000);
