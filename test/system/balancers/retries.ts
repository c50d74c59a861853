import { describe, expect, test } from "bun:test";
import { type HttpRequest, NoResponse, sendOnce } from "../../../harness/http-connection.ts";
import { type LoadBalancerKind, startLoadBalancer } from "../../../harness/load-balancer.ts";
import { startFakeServer } from "./fake-server.ts";
import { bearer, createPet, JSON_BODY, listPets } from "./requests.ts";
import type { Setup } from "./suite.ts";

/** More than twice as many as there are servers. */
const MAX_REQUESTS = 10;

/** One of three servers closes connections instead of responding: which requests are retried at another one? */
export function retryTests(kind: LoadBalancerKind, setup: () => Setup): void {
  interface Outcome {
    /** Of each response; 0 for none. */
    readonly statuses: readonly number[];
    /** Requests that the closing server received. */
    readonly received: readonly string[];
  }

  async function sendUntilClosed(request: (n: number) => HttpRequest): Promise<Outcome> {
    const closing = await startFakeServer("closes");
    const [first = 0, second = 0] = setup().fleet.ports;
    const balancer = await startLoadBalancer(kind, [first, second, closing.port]);
    const statuses: number[] = [];
    try {
      while (statuses.length < MAX_REQUESTS && closing.received.length === 0) {
        const response = sendOnce(balancer.port, request(statuses.length));
        statuses.push(await response.then(({ status }) => status, noResponse));
      }
      return { statuses, received: closing.received };
    } finally {
      await balancer.stop();
      closing.stop();
    }
  }

  const key = () => setup().key;

  describe("a connection that closes instead of a response", () => {
    test("GET is retried at another server, and the client gets 200", async () => {
      const { statuses, received } = await sendUntilClosed(() => listPets(key()));
      expect(received).toHaveLength(1);
      expect(new Set(statuses)).toEqual(new Set([200]));
    });

    test("POST with an Idempotency-Key is retried at another server, and the client gets 201", async () => {
      const { statuses, received } = await sendUntilClosed((n) =>
        createPet(key(), "Rex", `${kind.program.name}-${n}`),
      );
      expect(received).toHaveLength(1);
      expect(new Set(statuses)).toEqual(new Set([201]));
    });

    test("POST without an Idempotency-Key is sent once, and the client gets 503", async () => {
      const { statuses, received } = await sendUntilClosed(() => createPet(key(), "Rex"));
      expect(received).toHaveLength(1);
      expect(statuses.filter((status) => status !== 201)).toEqual([503]);
    });

    test("PATCH is sent once, even with an Idempotency-Key, and the client gets 503", async () => {
      const { statuses, received } = await sendUntilClosed((n) => ({
        method: "PATCH",
        path: "/v1/store/orders/1",
        headers: [bearer(key()), JSON_BODY, ["Idempotency-Key", `patch-${n}`]],
        body: '{"status":"completed"}',
      }));
      expect(received).toHaveLength(1);
      expect(statuses.filter((status) => status !== 404)).toEqual([503]);
    });
  });
}

function noResponse(error: unknown): 0 {
  if (error instanceof NoResponse) return 0;
  throw error;
}
