import { describe, expect, test } from "bun:test";
import { Unavailable } from "../../src/api/errors.ts";
import type { ApiKey } from "../../src/domain/api-keys.ts";
import { DEFAULT_PLANS } from "../../src/domain/plans.ts";
import { generateSecret, hashSecret } from "../../src/domain/secrets.ts";
import { TestClock } from "../service.ts";
import { MapKeyStore } from "./map-key-store.ts";
import { CLIENT, openAuthenticator } from "./open-authenticator.ts";

async function setUp({ maxVerified = 1_000 } = {}) {
  const keys = new MapKeyStore();
  const clock = new TestClock();
  const { authenticator, reader } = await openAuthenticator({ keys, clock, maxVerified });
  const authenticate = (secret: string) => authenticator.authenticate(`Bearer ${secret}`, CLIENT);
  /** How often the work asks the store. */
  const lookupsOf = async (work: () => unknown) => {
    const before = keys.lookups;
    await work();
    return keys.lookups - before;
  };
  return { keys, clock, authenticator, reader, authenticate, lookupsOf };
}

describe("a valid key", () => {
  test.each(["read", "write"] as const)(
    "is the principal, with its plan, limits and access %s",
    async (access) => {
      const { keys, authenticate } = await setUp();
      const { id, secret } = keys.create({ plan: "pro", access });
      const limits = DEFAULT_PLANS.pro;
      const expected = { keyId: id, plan: "pro" as const, limits, access };
      expect(authenticate(secret)).toMatchObject(expected);
      expect(authenticate(secret)).toMatchObject(expected);
    },
  );

  test("is the principal with its own limits on the enterprise plan", async () => {
    const { keys, authenticate } = await setUp();
    const limits = { perMinute: 1_000_000_000, perDay: 1 };
    const { secret } = keys.create({ plan: "enterprise", limits });
    expect(authenticate(secret)).toMatchObject({ limits });
    expect(authenticate(secret)).toMatchObject({ limits });
  });

  test("is looked up once, however the scheme is spelled", async () => {
    const { keys, authenticator, lookupsOf } = await setUp();
    const { id, secret } = keys.create({ id: 2 ** 40 });
    const lookups = await lookupsOf(() => {
      for (const start of ["Bearer ", "bearer ", "BEARER  ", `Bearer${" ".repeat(50)}`, "Bearer "]) {
        expect(authenticator.authenticate(start + secret, CLIENT)).toMatchObject({ keyId: id });
      }
    });
    expect(lookups).toBe(1);
  });

  test.each<["missing_api_key" | "invalid_api_key", (secret: string) => string | null]>([
    ["missing_api_key", () => null],
    ["missing_api_key", () => ""],
    ["missing_api_key", () => "Bearer"],
    ["missing_api_key", () => "Bearer "],
    ["missing_api_key", (secret) => secret],
    ["missing_api_key", (secret) => `Basic ${secret}`],
    ["missing_api_key", (secret) => `Bearer\t${secret}`],
    ["missing_api_key", (secret) => ` Bearer ${secret}`],
    ["invalid_api_key", (secret) => `Bearer ${secret} `],
    ["invalid_api_key", (secret) => `Bearer ${secret}0`],
    ["invalid_api_key", (secret) => `Bearer ${secret.slice(0, -1)}`],
    ["invalid_api_key", (secret) => `Bearer ${secret.replace("live", "test")}`],
    ["invalid_api_key", (secret) => `Bearer ${secret.toLowerCase()}`],
    ["invalid_api_key", (secret) => `Bearer ${secret.slice(0, 20)}\u0130${secret.slice(21)}`],
    ["invalid_api_key", () => "Bearer pet_live_"],
    ["invalid_api_key", (secret) => `Bearer pet_live_x${secret.slice(9)}`],
    ["invalid_api_key", (secret) => `Bearer pet_live_ ${secret.slice(9)}`],
    ["invalid_api_key", (secret) => `Bearer pet_live_${secret}`],
    ["invalid_api_key", (secret) => `Bearer pet_live_${"x".repeat(300)}${secret.slice(9)}`],
  ])("is %s in another header, before and after it was seen (%#)", async (failure, headerOf) => {
    const { keys, authenticator, authenticate } = await setUp();
    const { id, secret } = keys.create();
    expect(authenticator.authenticate(headerOf(secret), CLIENT)).toBe(failure);
    expect(authenticate(secret)).toMatchObject({ keyId: id });
    expect(authenticator.authenticate(headerOf(secret), CLIENT)).toBe(failure);
  });

  test("of the other environment is named as such without a lookup, unless it is mistyped", async () => {
    const { keys, authenticate, lookupsOf } = await setUp();
    const { secret } = keys.create({ environment: "staging" });
    expect(await lookupsOf(() => expect(authenticate(secret)).toBe("staging_api_key"))).toBe(0);
    expect(authenticate(`${secret.slice(0, -1)}!`)).toBe("invalid_api_key");
  });

  test("is invalid from the instant it expires, before and after it was seen", async () => {
    const { keys, clock, authenticate } = await setUp();
    const { secret } = keys.create({ expiresAt: clock.now() + 1_000 });
    const { secret: unseen } = keys.create({ expiresAt: clock.now() + 1_000 });
    clock.advance(999);
    expect(authenticate(secret)).toMatchObject({ keyId: 1 });
    clock.advance(1);
    expect(authenticate(secret)).toBe("expired_api_key");
    expect(authenticate(unseen)).toBe("expired_api_key");
  });

  test("keeps its limits until its change is followed", async () => {
    const { keys, clock, reader, authenticate } = await setUp();
    const { id, secret } = keys.create();
    authenticate(secret);
    keys.update(id, { plan: "business" });
    expect(authenticate(secret)).toMatchObject({ limits: DEFAULT_PLANS.free });
    await reader.read();
    expect(authenticate(secret)).toMatchObject({ limits: DEFAULT_PLANS.business });
    keys.update(id, { revokedAt: clock.now() });
    await reader.read();
    expect(authenticate(secret)).toBe("invalid_api_key");
  });

  test("is looked up again after its change; other keys are not", async () => {
    const { keys, reader, authenticate, lookupsOf } = await setUp();
    const [changed, other] = [keys.create(), keys.create()];
    await reader.read();
    authenticate(changed.secret);
    authenticate(other.secret);
    keys.update(changed.id, { plan: "pro" });
    await reader.read();
    expect(await lookupsOf(() => authenticate(other.secret))).toBe(0);
    expect(await lookupsOf(() => authenticate(changed.secret))).toBe(1);
    expect(await lookupsOf(() => authenticate(changed.secret))).toBe(0);
  });

  test("works with both secrets during the overlap of a rotation, then with the new one", async () => {
    const { keys, clock, reader, authenticate } = await setUp();
    const { id, secret } = keys.create();
    authenticate(secret);
    const successor = keys.rotate(id, clock.now() + 1_000);
    await reader.read();
    expect(authenticate(secret)).toMatchObject({ keyId: id });
    expect(authenticate(successor)).toMatchObject({ keyId: id });
    clock.advance(1_000);
    expect(authenticate(secret)).toBe("invalid_api_key");
    expect(authenticate(successor)).toMatchObject({ keyId: id });
  });

  test("is looked up again when more keys are in use than the cache holds", async () => {
    const { keys, authenticate, lookupsOf } = await setUp({ maxVerified: 3 });
    const secrets = Array.from({ length: 4 }, () => keys.create().secret);
    expect(await lookupsOf(() => secrets.forEach(authenticate))).toBe(4);
    expect(await lookupsOf(() => secrets.slice(1).forEach(authenticate))).toBe(0);
    expect(await lookupsOf(() => secrets.slice(0, 1).forEach(authenticate))).toBe(1);
  });

  test("is one of 10,000 that are looked up once, and again after their changes", async () => {
    const { keys, reader, authenticate, lookupsOf } = await setUp({ maxVerified: 10_000 });
    const created = Array.from({ length: 10_000 }, () => keys.create());
    await reader.read();
    const authenticateAll = () => {
      for (const { id, secret } of created) expect(authenticate(secret)).toMatchObject({ keyId: id });
    };
    expect(await lookupsOf(authenticateAll)).toBe(10_000);
    expect(await lookupsOf(authenticateAll)).toBe(0);
    for (const { id } of created) if (id % 3 === 0) keys.update(id, {});
    await reader.read();
    expect(await lookupsOf(authenticateAll)).toBe(3_333);
  });

  test("is looked up again when a copy of the database takes over that lacks the last changes", async () => {
    const { keys, clock, reader, authenticate } = await setUp();
    const [kept, revoked] = [keys.create(), keys.create()];
    const takeOver = keys.copy();
    const lost = keys.create();
    keys.update(revoked.id, { revokedAt: clock.now() });
    await reader.read();
    for (const { secret } of [kept, lost]) expect(authenticate(secret)).toMatchObject({ plan: "free" });
    expect(authenticate(revoked.secret)).toBe("invalid_api_key");

    takeOver();
    expect(await reader.read()).toMatchObject({
      replacement: { revision: 2, revisionBefore: 4 },
    });
    expect(authenticate(lost.secret)).toBe("invalid_api_key");
    for (const { id, secret } of [kept, revoked]) {
      expect(authenticate(secret)).toMatchObject({ plan: "free" });
      keys.update(id, { revokedAt: clock.now() });
      expect(await reader.read()).not.toHaveProperty("replacement");
      expect(authenticate(secret)).toBe("invalid_api_key");
    }
  });

  test("is looked up again when the copy has given the revisions that it lacks to other changes", async () => {
    const { keys, clock, reader, authenticate } = await setUp();
    const { id, secret } = keys.create();
    const takeOver = keys.copy();
    keys.create();
    await reader.read();
    expect(authenticate(secret)).toMatchObject({ keyId: id });
    takeOver();
    keys.update(id, { revokedAt: clock.now() });
    await reader.read();
    expect(authenticate(secret)).toBe("invalid_api_key");
  });

  test("is looked up again after 100,001 other keys have changed, and not after 100,000", async () => {
    const { keys, clock } = await setUp();
    const { id, secret } = keys.create();
    const key = keys.peek(hashSecret(secret))?.key;
    let others = 0;
    const changesSince = () => ({
      revision: 1,
      timeline: "1",
      hasQuestions: false,
      changed: Array.from(
        { length: others },
        (_, i) => ({ kind: "key", key: { ...key, id: id + 1 + i } as ApiKey }) as const,
      ),
    });
    const findCredential = (hash: string) => keys.findCredential(hash);
    const { authenticator, reader } = await openAuthenticator({
      keys: { findCredential, changesSince },
      clock,
    });
    authenticator.authenticate(`Bearer ${secret}`, CLIENT);
    for (const [changed, lookups] of [
      [100_000, 1],
      [100_001, 2],
    ] as const) {
      others = changed;
      await reader.read();
      authenticator.authenticate(`Bearer ${secret}`, CLIENT);
      expect(keys.lookups).toBe(lookups);
    }
  });

  test("is invalid with any one character changed, lost or added, after it was seen", async () => {
    const { keys, authenticate } = await setUp();
    const { secret } = keys.create();
    authenticate(secret);
    for (let at = 0; at < secret.length; at++) {
      const [before, own, after] = [secret.slice(0, at), secret.charCodeAt(at), secret.slice(at + 1)];
      const others = [own === 0x61 ? "b" : "a", String.fromCharCode(own | 0x100), "", `${secret[at]}a`];
      for (const other of others) expect(authenticate(before + other + after)).toBe("invalid_api_key");
    }
  });
});

describe("a rejected key", () => {
  test("is looked up once, and again when any key has changed", async () => {
    const { keys, reader, authenticate, lookupsOf } = await setUp();
    const secret = generateSecret("production");
    expect(await lookupsOf(() => [authenticate(secret), authenticate(secret)])).toBe(1);
    keys.create();
    await reader.read();
    expect(await lookupsOf(() => [authenticate(secret), authenticate(secret)])).toBe(1);
    expect(authenticate(secret)).toBe("invalid_api_key");
  });

  test("is cached in a header of up to 60 characters", async () => {
    const { authenticator, lookupsOf } = await setUp();
    const secret = generateSecret("production");
    const authenticate = (blanks: number) =>
      authenticator.authenticate(`Bearer${" ".repeat(blanks)}${secret}`, CLIENT);
    expect(await lookupsOf(() => [authenticate(9), authenticate(9)])).toBe(1);
    expect(await lookupsOf(() => [authenticate(10), authenticate(10)])).toBe(2);
  });

  test("is cached until 10,000 others were rejected after it", async () => {
    const { authenticate, lookupsOf } = await setUp();
    const secrets = Array.from({ length: 10_007 }, () => generateSecret("production"));
    expect(await lookupsOf(() => secrets.forEach(authenticate))).toBe(10_007);
    expect(await lookupsOf(() => secrets.slice(7).forEach(authenticate))).toBe(0);
    expect(await lookupsOf(() => secrets.slice(0, 7).forEach(authenticate))).toBe(7);
  });
});

describe("a late response of the store", () => {
  test("is used and not cached when the key changed meanwhile", async () => {
    const { keys, reader, authenticate, lookupsOf } = await setUp();
    const { id, secret } = keys.create();
    const delayed = keys.delay();
    const result = authenticate(secret);
    keys.update(id, { plan: "pro" });
    await reader.read();
    delayed.release();
    expect(await result).toMatchObject({ limits: DEFAULT_PLANS.free });

    keys.respond = (found) => found;
    expect(await lookupsOf(() => authenticate(secret))).toBe(1);
    expect(authenticate(secret)).toMatchObject({ limits: DEFAULT_PLANS.pro });
  });

  test("does not reject a key that was created meanwhile", async () => {
    const { keys, reader, authenticate } = await setUp();
    const delayed = keys.delay();
    const secret = generateSecret("production");
    const result = authenticate(secret);
    keys.create();
    await reader.read();
    delayed.release();
    expect(await result).toBe("invalid_api_key");
    keys.respond = () => ({
      key: { id: 9, name: "made", labels: [], plan: "free", access: "write", createdAt: 0 },
    });
    expect(await authenticate(secret)).toMatchObject({ keyId: 9 });
  });

  test("comes before a lookup of the same secret that began later, so what a server shows never goes back", async () => {
    const { keys, reader, authenticate } = await setUp();
    const { id, secret } = keys.create();
    const delayed = keys.delay();
    const shown: unknown[] = [];
    const first = Promise.resolve(authenticate(secret)).then((result) => shown.push(result));
    keys.update(id, { plan: "pro" });
    await reader.read();
    keys.respond = (found) => found;
    const second = Promise.resolve(authenticate(secret)).then((result) => shown.push(result));
    delayed.release();
    await Promise.all([first, second]);
    expect(shown).toMatchObject([{ plan: "free" }, { plan: "pro" }]);
    expect(authenticate(secret)).toMatchObject({ plan: "pro" });
  });

  test("is cached once when several requests wait for it", async () => {
    const { keys, authenticate, lookupsOf } = await setUp({ maxVerified: 2 });
    const [one, other] = [keys.create(), keys.create()];
    authenticate(other.secret);
    const delayed = keys.delay();
    const results: unknown[] = [];
    const lookups = await lookupsOf(() => {
      for (let i = 0; i < 3; i++) results.push(authenticate(one.secret));
    });
    expect(lookups).toBe(1);
    delayed.release();
    for (const result of results) expect(await result).toMatchObject({ keyId: one.id });
    expect(await lookupsOf(() => [authenticate(one.secret), authenticate(other.secret)])).toBe(0);
  });

  test("is not used for a request that came after the key's change was followed", async () => {
    const { keys, clock, reader, authenticate, lookupsOf } = await setUp();
    const { id, secret } = keys.create();
    const delayed = keys.delay();
    const early = authenticate(secret);
    keys.update(id, { revokedAt: clock.now() });
    await reader.read();
    const late = authenticate(secret);
    delayed.release();
    expect(await early).toMatchObject({ keyId: id });
    keys.respond = (found) => found;
    delayed.release();
    expect(await late).toBe("invalid_api_key");
    expect(await lookupsOf(() => expect(authenticate(secret)).toBe("invalid_api_key"))).toBe(0);
  });
});

describe("a store that is unavailable", () => {
  const unavailable = new Unavailable("the store is unavailable");

  for (const [how, deliver] of [
    [
      "throws",
      () => {
        throw unavailable;
      },
    ],
    ["rejects", () => Promise.reject(unavailable)],
  ] as const) {
    test(`one that ${how}: cached keys work, and others are looked up again later`, async () => {
      const { keys, authenticate } = await setUp();
      const [cached, other] = [keys.create(), keys.create()];
      authenticate(cached.secret);
      keys.respond = deliver;
      expect(authenticate(cached.secret)).toMatchObject({ keyId: cached.id });
      expect(await authenticate(other.secret)).toBe(unavailable);
      keys.respond = (found) => found;
      expect(authenticate(other.secret)).toMatchObject({ keyId: other.id });
    });
  }

  test("another error is thrown", async () => {
    const { keys, authenticate } = await setUp();
    const { secret } = keys.create();
    keys.respond = () => {
      throw new TypeError("a mistake");
    };
    expect(() => authenticate(secret)).toThrow("a mistake");
    keys.respond = () => Promise.reject(new TypeError("a mistake"));
    await expect(authenticate(secret)).rejects.toThrow("a mistake");
  });
});
