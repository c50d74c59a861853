import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { type Balancer, type Kind, startBalancer } from "./balancer.ts";
import { type Fleet, startFleet } from "./fleet.ts";
import { startImpostor } from "./impostor.ts";
import { passageTests } from "./passage.ts";
import { listeningPorts } from "./ports.ts";
import { repeatTests } from "./repeats.ts";
import { createPet, listPets } from "./requests.ts";
import { askOnce } from "./wire.ts";

const START_TIMEOUT_MS = 60_000;

export interface Scene {
  readonly fleet: Fleet;
  readonly balancer: Balancer;
}

/** What a balancer with its documented configuration does, whichever it is. `own` are the tests of one kind alone. */
export function balancerSuite(kind: Kind, own: (scene: () => Scene) => void): void {
  describe(kind.program, () => {
    let current: Scene | undefined;
    const scene = () => {
      if (current === undefined) throw new Error("nothing was started");
      return current;
    };
    beforeAll(async () => {
      const fleet = await startFleet(3);
      current = { fleet, balancer: await startBalancer(kind, fleet.ports) };
    }, START_TIMEOUT_MS);
    afterAll(async () => {
      await current?.balancer.stop();
      await current?.fleet.end();
    });

    passageTests(scene);
    addressTests(scene);
    connectionTests(kind);
    repeatTests(kind, scene);
    own(scene);
  });
}

function addressTests(scene: () => Scene): void {
  test("callers without a key are counted by their own address, whatever they write into X-Forwarded-For", async () => {
    const left = async (from: string, ...forwardedFor: string[]) => {
      const headers = forwardedFor.map((value) => ["X-Forwarded-For", value] as const);
      const answer = await askOnce(scene().balancer.port, { path: "/v1/pets", headers }, from);
      return Number(answer.headers["x-ratelimit-remaining"]);
    };
    expect(await left("127.0.0.9")).toBe(299);
    expect(await left("127.0.0.9", "203.0.113.7")).toBe(298);
    expect(await left("127.0.0.9", "203.0.113.8, 127.0.0.1")).toBe(297);
    expect(await left("127.0.0.9", "203.0.113.9", "127.0.0.1")).toBe(296);
    expect(await left("127.0.0.10", "127.0.0.9")).toBe(299);
  });
}

function connectionTests(kind: Kind): void {
  test("connections to the instances are kept, also where clients keep none", async () => {
    const impostor = await startImpostor("answers");
    const balancer = await startBalancer(kind, [impostor.port, impostor.port, impostor.port]);
    for (let i = 0; i < 100; i++) await askOnce(balancer.port, { path: "/v1/pets" });
    expect(impostor.taken).toHaveLength(100);
    expect(impostor.connections).toBeLessThan(25);
    await balancer.stop();
    impostor.end();
  });

  test("with no instance left: 503 in the interface's words, with Retry-After", async () => {
    const balancer = await startBalancer(kind, listeningPorts(3));
    for (const asking of [listPets("key"), createPet("key", "Rex"), createPet("key", "Rex", "once")]) {
      const { status, headers, body } = await askOnce(balancer.port, asking);
      const error = JSON.parse(body) as Record<string, unknown>;
      expect(Object.keys(error)).toEqual(["code", "message", "status"]);
      expect({ status, ...error }).toMatchObject({ status: 503, code: "unavailable" });
      expect(headers).toMatchObject({ "content-type": "application/json", "retry-after": "1" });
    }
    await balancer.stop();
  });
}
