import { describe, expect, test } from "bun:test";
import { Unavailable } from "../../src/contract/errors.ts";
import { type Credential, generateSecret } from "../../src/domain/api-keys.ts";
import { DEFAULT_PLANS } from "../../src/domain/plans.ts";
import { Authenticator } from "../../src/auth/authenticator.ts";
import { TestClock } from "../service.ts";
import { MapKeys } from "./map-keys.ts";

async function setUp({ maxKnown = 1_000 } = {}) {
  const keys = new MapKeys();
  const clock = new TestClock();
  const authenticator = await Authenticator.open({
    keys,
    environment: "production",
    plans: DEFAULT_PLANS,
    clock,
    maxKnown,
  });
  const find = (secret: string) => authenticator.find(`Bearer ${secret}`);
  /** How often the store is asked while something is done. */
  const readsOf = async (work: () => unknown) => {
    const before = keys.reads;
    await work();
    return keys.reads - before;
  };
  return { keys, clock, authenticator, find, readsOf };
}

/** Holds answers of the store back until they are told to arrive. */
function holdBack(keys: MapKeys) {
  const held: (() => void)[] = [];
  keys.deliver = (found) => new Promise<Credential | undefined>((resolve) => held.push(() => resolve(found)));
  return {
    arrive() {
      for (const release of held.splice(0)) release();
    },
  };
}

describe("a key", () => {
  test("is the principal with its number, its subject and its plan's limits", async () => {
    const { keys, find } = await setUp();
    const { id, secret } = keys.create({ plan: "pro" });
    const expected = { keyId: id, subject: `key:${id}` as const, limits: DEFAULT_PLANS.pro };
    expect(find(secret)).toEqual(expected);
    expect(find(secret)).toEqual(expected);
  });

  test("is the principal with its own limits on the Enterprise plan", async () => {
    const { keys, find } = await setUp();
    const limits = { perMinute: 1_000_000_000, perDay: 1 };
    const { secret } = keys.create({ plan: "enterprise", limits });
    expect(find(secret)).toMatchObject({ limits });
    expect(find(secret)).toMatchObject({ limits });
  });

  test("is looked up in the store once, however its scheme is written", async () => {
    const { keys, authenticator, readsOf } = await setUp();
    const { id, secret } = keys.create();
    const reads = await readsOf(() => {
      for (const start of ["Bearer ", "bearer ", "BEARER  ", `Bearer${" ".repeat(50)}`, "Bearer "]) {
        expect(authenticator.find(start + secret)).toMatchObject({ keyId: id });
      }
    });
    expect(reads).toBe(1);
  });

  test("with a number beyond what is remembered is looked up each time", async () => {
    const { keys, find, readsOf } = await setUp();
    const { id, secret } = keys.create({ id: 2 ** 40 });
    const reads = await readsOf(() => {
      expect(find(secret)).toMatchObject({ keyId: id, subject: `key:${id}` });
      expect(find(secret)).toMatchObject({ keyId: id, subject: `key:${id}` });
    });
    expect(reads).toBe(2);
  });

  test("of the other environment is invalid without a look-up", async () => {
    const { keys, find, readsOf } = await setUp();
    const { secret } = keys.create({ environment: "staging" });
    expect(await readsOf(() => expect(find(secret)).toBe("invalid_api_key"))).toBe(0);
  });

  test("is invalid from the instant it expires, before and after it was seen", async () => {
    const { keys, clock, find } = await setUp();
    const { secret } = keys.create({ expiresAt: clock.now() + 1_000 });
    const { secret: unseen } = keys.create({ expiresAt: clock.now() + 1_000 });
    clock.advance(999);
    expect(find(secret)).toMatchObject({ keyId: 1 });
    clock.advance(1);
    expect(find(secret)).toBe("invalid_api_key");
    expect(find(unseen)).toBe("invalid_api_key");
  });

  test("is what it was until its change is followed, and then what it became", async () => {
    const { keys, clock, authenticator, find } = await setUp();
    const { id, secret } = keys.create();
    find(secret);
    keys.update(id, { plan: "business" });
    expect(find(secret)).toMatchObject({ limits: DEFAULT_PLANS.free });
    expect((await authenticator.follow()).map((key) => key.id)).toEqual([id]);
    expect(find(secret)).toMatchObject({ limits: DEFAULT_PLANS.business });
    keys.update(id, { revokedAt: clock.now() });
    await authenticator.follow();
    expect(find(secret)).toBe("invalid_api_key");
  });

  test("is looked up again after its change, and no other key is", async () => {
    const { keys, authenticator, find, readsOf } = await setUp();
    const [changed, other] = [keys.create(), keys.create()];
    await authenticator.follow();
    find(changed.secret);
    find(other.secret);
    keys.update(changed.id, { plan: "pro" });
    await authenticator.follow();
    expect(await readsOf(() => find(other.secret))).toBe(0);
    expect(await readsOf(() => find(changed.secret))).toBe(1);
    expect(await readsOf(() => find(changed.secret))).toBe(0);
  });

  test("works by both its secrets while they overlap, and then by the new one", async () => {
    const { keys, clock, authenticator, find } = await setUp();
    const { id, secret } = keys.create();
    find(secret);
    const successor = keys.roll(id, clock.now() + 1_000);
    await authenticator.follow();
    expect(find(secret)).toMatchObject({ keyId: id });
    expect(find(successor)).toMatchObject({ keyId: id });
    clock.advance(1_000);
    expect(find(secret)).toBe("invalid_api_key");
    expect(find(successor)).toMatchObject({ keyId: id });
  });

  test("is looked up again when more keys are in use than are remembered", async () => {
    const { keys, find, readsOf } = await setUp({ maxKnown: 3 });
    const secrets = Array.from({ length: 4 }, () => keys.create().secret);
    expect(await readsOf(() => secrets.forEach(find))).toBe(4);
    expect(await readsOf(() => secrets.slice(1).forEach(find))).toBe(0);
    expect(await readsOf(() => secrets.slice(0, 1).forEach(find))).toBe(1);
  });
});

describe("a stranger", () => {
  test("is looked up once, and again when any key has changed", async () => {
    const { keys, authenticator, find, readsOf } = await setUp();
    const secret = generateSecret("production");
    expect(await readsOf(() => [find(secret), find(secret)])).toBe(1);
    keys.create();
    await authenticator.follow();
    expect(await readsOf(() => [find(secret), find(secret)])).toBe(1);
    expect(find(secret)).toBe("invalid_api_key");
  });

  test("is remembered in one spelling, and never in a long one", async () => {
    const { authenticator, readsOf } = await setUp();
    const secret = generateSecret("production");
    const find = (blanks: number) => authenticator.find(`Bearer${" ".repeat(blanks)}${secret}`);
    expect(await readsOf(() => [find(9), find(9)])).toBe(1);
    expect(await readsOf(() => [find(10), find(10)])).toBe(2);
  });

  test("is one of 10,000 that are remembered at most", async () => {
    const { find, readsOf } = await setUp();
    const secrets = Array.from({ length: 10_007 }, () => generateSecret("production"));
    expect(await readsOf(() => secrets.forEach(find))).toBe(10_007);
    expect(await readsOf(() => secrets.forEach(find))).toBe(7);
  });
});

describe("an answer that comes late", () => {
  test("is given but not remembered when its key has changed meanwhile", async () => {
    const { keys, authenticator, find, readsOf } = await setUp();
    const { id, secret } = keys.create();
    const held = holdBack(keys);
    const answer = find(secret);
    keys.update(id, { plan: "pro" });
    await authenticator.follow();
    held.arrive();
    expect(await answer).toMatchObject({ limits: DEFAULT_PLANS.free });

    keys.deliver = (found) => found;
    expect(await readsOf(() => find(secret))).toBe(1);
    expect(find(secret)).toMatchObject({ limits: DEFAULT_PLANS.pro });
  });

  test("makes no stranger of a key that was made meanwhile", async () => {
    const { keys, authenticator, find } = await setUp();
    const held = holdBack(keys);
    const secret = generateSecret("production");
    const answer = find(secret);
    keys.create();
    await authenticator.follow();
    // With the first look after a change the strangers from before it are gone.
    void find(generateSecret("production"));
    held.arrive();
    expect(await answer).toBe("invalid_api_key");
    keys.deliver = () => ({ key: { id: 9, name: "made", plan: "free", createdAt: 0 } });
    expect(find(secret)).toMatchObject({ keyId: 9 });
  });

  test("twice is remembered once", async () => {
    const { keys, find, readsOf } = await setUp({ maxKnown: 2 });
    const [one, other] = [keys.create(), keys.create()];
    find(other.secret);
    const held = holdBack(keys);
    const answers = [find(one.secret), find(one.secret), find(one.secret)];
    held.arrive();
    for (const answer of answers) expect(await answer).toMatchObject({ keyId: one.id });
    expect(await readsOf(() => [find(one.secret), find(other.secret)])).toBe(0);
  });

  test("that a key is gone outweighs an earlier one that it is there", async () => {
    const { keys, clock, find, readsOf } = await setUp();
    const { id, secret } = keys.create();
    const held = holdBack(keys);
    const early = find(secret);
    keys.update(id, { revokedAt: clock.now() });
    const late = find(secret);
    held.arrive();
    expect(await early).toMatchObject({ keyId: id });
    expect(await late).toBe("invalid_api_key");
    expect(await readsOf(() => expect(find(secret)).toBe("invalid_api_key"))).toBe(0);
  });
});

describe("without the store", () => {
  const away = new Unavailable("the store is away");

  for (const [how, deliver] of [
    [
      "throws",
      () => {
        throw away;
      },
    ],
    ["rejects", () => Promise.reject(away)],
  ] as const) {
    test(`one that ${how}: known keys are recognised, others are told so and not taken for strangers`, async () => {
      const { keys, find } = await setUp();
      const [known, unknown] = [keys.create(), keys.create()];
      find(known.secret);
      keys.deliver = deliver;
      expect(find(known.secret)).toMatchObject({ keyId: known.id });
      expect(await find(unknown.secret)).toBe(away);
      keys.deliver = (found) => found;
      expect(find(unknown.secret)).toMatchObject({ keyId: unknown.id });
    });
  }

  test("a fault of any other kind is thrown", async () => {
    const { keys, find } = await setUp();
    const { secret } = keys.create();
    keys.deliver = () => {
      throw new TypeError("a mistake");
    };
    expect(() => find(secret)).toThrow("a mistake");
    keys.deliver = () => Promise.reject(new TypeError("a mistake"));
    await expect(find(secret)).rejects.toThrow("a mistake");
  });
});
