import { expect } from "bun:test";
import { startLoad } from "./load.ts";
import { bearer, createPet, listPets } from "./requests.ts";
import type { Scene } from "./suite.ts";
import { type Answer, askOnce, type Asking } from "./wire.ts";

const CONNECTIONS = 8;

/** Lists and safe creates at once, while `happens`: every one is answered, and every animal is there once. */
export function expectUnnoticed(scene: Scene, happens: () => Promise<void>): Promise<void> {
  const { key } = scene.fleet;
  return expectSound(scene, happens, {
    request: (name, n) => (n % 2 === 0 ? listPets(key) : createPet(key, name, `${name}-${n}`)),
  });
}

/** The same for creates without an Idempotency-Key, which nobody may repeat. */
export function expectNoPlainCreateLost(
  scene: Scene,
  happens: () => Promise<void>,
  options: { afresh?: boolean } = {},
): Promise<void> {
  return expectSound(scene, happens, { request: (name) => createPet(scene.fleet.key, name), ...options });
}

async function expectSound(
  scene: Scene,
  happens: () => Promise<void>,
  { request, ...options }: { request: (name: string, n: number) => Asking; afresh?: boolean },
): Promise<void> {
  const name = crypto.randomUUID();
  const load = startLoad({
    port: scene.balancer.port,
    connections: CONNECTIONS,
    request: (n) => request(name, n),
    ...options,
  });
  await happens();
  const { answered, failed } = await load.stop();
  expect(failed.slice(0, 5)).toEqual([]);
  await expectAllThere(scene, name, answered);
}

async function expectAllThere(scene: Scene, name: string, answered: readonly Answer[]): Promise<void> {
  const created = answered.filter(({ status }) => status === 201).map(({ body }) => body);
  expect(created.length).toBeGreaterThan(0);
  const kept = (await listAll(scene)).filter((pet) => pet.includes(name));
  expect(kept.length).toBe(created.length);
  expect(new Set(kept)).toEqual(new Set(created));
}

/** Each animal as its text in the list, which is its text in the answer to its creation. */
async function listAll({ fleet, balancer }: Scene): Promise<string[]> {
  const pets: string[] = [];
  let path: string | undefined = "/v1/pets?limit=100";
  while (path !== undefined) {
    const answer = await askOnce(balancer.port, { path, headers: [bearer(fleet.key)] });
    pets.push(...answer.body.slice(1, -1).split(/(?<=\}),/));
    path = /<[^>]*(\/v1\/[^>]+)>; rel="next"/.exec(answer.headers.link ?? "")?.[1];
  }
  return pets;
}

/** For what announces nothing when it happens. */
export async function until(isSo: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await isSo())) await Bun.sleep(10);
}
