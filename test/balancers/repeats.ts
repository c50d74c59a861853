import { describe, expect, test } from "bun:test";
import { type Kind, startBalancer } from "./balancer.ts";
import { startImpostor } from "./impostor.ts";
import { bearer, createPet, JSON_BODY, listPets } from "./requests.ts";
import type { Scene } from "./suite.ts";
import { askOnce, type Asking, Unanswered } from "./wire.ts";

/** Twice round all instances, and some more. */
const MOST = 10;

/** One of three instances closes connections in place of answers: whose request is sent to another one? */
export function repeatTests(kind: Kind, scene: () => Scene): void {
  interface Played {
    /** Status of each answer; 0 for none. */
    readonly statuses: readonly number[];
    /** Requests that were closed on. */
    readonly taken: readonly string[];
  }

  async function play(request: (n: number) => Asking): Promise<Played> {
    const { fleet } = scene();
    const impostor = await startImpostor("closes");
    const [first = 0, second = 0] = fleet.ports;
    const balancer = await startBalancer(kind, [first, second, impostor.port]);
    const statuses: number[] = [];
    try {
      while (statuses.length < MOST && impostor.taken.length === 0) {
        const answer = askOnce(balancer.port, request(statuses.length));
        statuses.push(await answer.then(({ status }) => status, unanswered));
      }
      return { statuses, taken: impostor.taken };
    } finally {
      await balancer.stop();
      impostor.end();
    }
  }

  const key = () => scene().fleet.key;

  describe("a connection that closes in place of an answer", () => {
    test("GET: another instance is asked, and the client notices nothing", async () => {
      const { statuses, taken } = await play(() => listPets(key()));
      expect(taken).toHaveLength(1);
      expect(new Set(statuses)).toEqual(new Set([200]));
    });

    test("POST with an Idempotency-Key: so too", async () => {
      const { statuses, taken } = await play((n) => createPet(key(), "Rex", `${kind.program}-${n}`));
      expect(taken).toHaveLength(1);
      expect(new Set(statuses)).toEqual(new Set([201]));
    });

    test("POST without one: sent once, and the client is told 503", async () => {
      const { statuses, taken } = await play(() => createPet(key(), "Rex"));
      expect(taken).toHaveLength(1);
      expect(statuses.filter((status) => status !== 201)).toEqual([503]);
    });

    test("PATCH: sent once, whatever it carries, and the client is told 503", async () => {
      const { statuses, taken } = await play((n) => ({
        method: "PATCH",
        path: "/v1/store/orders/1",
        headers: [bearer(key()), JSON_BODY, ["Idempotency-Key", `patch-${n}`]],
        body: '{"status":"completed"}',
      }));
      expect(taken).toHaveLength(1);
      expect(statuses.filter((status) => status !== 404)).toEqual([503]);
    });
  });
}

function unanswered(error: unknown): 0 {
  if (error instanceof Unanswered) return 0;
  throw error;
}
