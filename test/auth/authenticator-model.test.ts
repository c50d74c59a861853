import { expect, test } from "bun:test";
import * as fc from "fast-check";
import { generateSecret } from "../../src/domain/api-keys.ts";
import { DEFAULT_PLANS } from "../../src/domain/plans.ts";
import type { Authenticator } from "../../src/auth/authenticator.ts";
import { TestClock } from "../service.ts";
import { ModelAuthenticator } from "./authenticator-model.ts";
import { MapKeyStore } from "./map-key-store.ts";
import { CLIENT, openAuthenticator } from "./open-authenticator.ts";

type Step = (world: World) => unknown;

/** Keys with their secrets, and a few secrets without a key. */
interface World {
  readonly keys: MapKeyStore;
  readonly clock: TestClock;
  readonly authenticator: Authenticator;
  readonly model: ModelAuthenticator;
  readonly ids: number[];
  readonly secrets: string[];
  readonly check: (authorization: string | null) => unknown;
}

async function openWorld(
  maxVerified: number,
  checkIn: (world: Omit<World, "check">) => World["check"],
): Promise<World> {
  const keys = new MapKeyStore();
  const clock = new TestClock();
  const secrets = [generateSecret("production"), keys.create({ environment: "staging" }).secret];
  const authenticator = await openAuthenticator({ keys, clock, maxVerified });
  const model = new ModelAuthenticator({ keys, plans: DEFAULT_PLANS, clock });
  const world = { keys, clock, authenticator, model, ids: [], secrets };
  return { ...world, check: checkIn(world) };
}

const SPELLINGS: readonly ((secret: string) => string | null)[] = [
  (secret) => `Bearer ${secret}`,
  (secret) => `Bearer ${secret}`,
  (secret) => `bearer ${secret}`,
  (secret) => `BEARER   ${secret}`,
  (secret) => `Bearer${" ".repeat(20)}${secret}`,
  (secret) => `Bearer ${secret} `,
  (secret) => `Bearer ${secret}0`,
  (secret) => `Bearer ${secret.slice(0, -1)}`,
  (secret) => `Bearer ${secret.replace("live", "test")}`,
  (secret) => `Bearer ${secret.toLowerCase()}`,
  (secret) => `Bearer\t${secret}`,
  (secret) => ` Bearer ${secret}`,
  (secret) => `Basic ${secret}`,
  (secret) => secret,
  () => "Bearer",
  () => "Bearer ",
  () => "",
  () => null,
];

const pick = <T>(list: readonly T[], n: number): T | undefined => list[n % list.length];
const nat = fc.nat(1_000);
const plan = fc.constantFrom("free", "pro", "business", "enterprise");
const lengthMs = fc.constantFrom(0, 1, 10, 1_000);

const create = fc
  .record({ plan, lives: fc.option(lengthMs, { nil: undefined }), n: nat })
  .map(({ plan, lives, n }): Step => ({ keys, clock, ids, secrets }) => {
    const limits = { perMinute: n + 1, perDay: n + 2 };
    const expiry = lives === undefined ? {} : { expiresAt: clock.now() + lives };
    const { id, secret } = keys.create({ plan, limits, ...expiry });
    ids.push(id);
    secrets.push(secret);
  });
const rotate = fc.tuple(nat, lengthMs).map(([n, overlap]): Step => ({ keys, clock, ids, secrets }) => {
  const id = pick(ids, n);
  if (id !== undefined) secrets.push(keys.rotate(id, clock.now() + overlap));
});
const change = fc.tuple(nat, plan, fc.boolean()).map(([n, plan, revoke]): Step => ({ keys, clock, ids }) => {
  const id = pick(ids, n);
  if (id !== undefined) keys.update(id, revoke ? { revokedAt: clock.now() } : { plan });
});
const advance = lengthMs.map(
  (ms): Step =>
    ({ clock }) =>
      clock.advance(ms),
);
const setClock = fc.constantFrom(-86_400_000, -10, 10, 86_400_000).map(
  (byMs): Step =>
    ({ clock }) =>
      clock.step(byMs),
);
const follow = fc.constant<Step>(async ({ authenticator, model }) => {
  await authenticator.followChanges();
  model.followChanges();
});
const present = fc.tuple(nat, fc.nat(SPELLINGS.length - 1)).map(([n, spelling]): Step => (world) => {
  world.check(SPELLINGS[spelling]?.(pick(world.secrets, n) ?? "") ?? null);
});
/** One character is wrong. */
const mistype = fc
  .tuple(nat, fc.nat(44), fc.constantFrom("0", "z", "_", "\u0130"))
  .map(([n, at, character]): Step => ({ secrets, check }) => {
    const secret = pick(secrets, n) ?? "";
    check(`Bearer ${secret.slice(0, at)}${character}${secret.slice(at + 1)}`);
  });
const step = fc.oneof(
  { arbitrary: present, weight: 10 },
  { arbitrary: mistype, weight: 1 },
  { arbitrary: create, weight: 3 },
  { arbitrary: rotate, weight: 1 },
  { arbitrary: change, weight: 2 },
  { arbitrary: advance, weight: 1 },
  { arbitrary: setClock, weight: 1 },
  { arbitrary: follow, weight: 3 },
);
const steps = fc.array(step, { maxLength: 120, size: "max" });

test("authenticator and model have the same results and look-ups, through any changes and spellings", async () => {
  await fc.assert(
    fc.asyncProperty(steps, async (steps) => {
      const world = await openWorld(1_000, ({ keys, authenticator, model }) => (header) => {
        expect(authenticator.authenticate(header, CLIENT)).toEqual(model.authenticate(header));
        expect(keys.lookUps).toBe(model.lookUps);
      });
      for (const step of steps) await step(world);
      for (const secret of world.secrets) world.check(`Bearer ${secret}`);
    }),
    { numRuns: 300 },
  );
});

test("with a cache of three keys, the results are those without a cache, once changes are followed", async () => {
  await fc.assert(
    fc.asyncProperty(steps, async (steps) => {
      const world = await openWorld(3, ({ authenticator, model }) => (header) => {
        expect(authenticator.authenticate(header, CLIENT)).toEqual(model.authenticateWithoutCache(header));
      });
      for (const step of steps) {
        await step(world);
        await world.authenticator.followChanges();
      }
      for (const secret of world.secrets) world.check(`Bearer ${secret}`);
    }),
    { numRuns: 200 },
  );
});
