import { describe, expect, test } from "bun:test";
import * as fc from "fast-check";
import { KeyCache, type VerifiedKey } from "../../src/auth/authenticator.ts";
import { generateSecret, PLANS } from "../../src/domain/api-keys.ts";

const newSecret = () => generateSecret("production");
const verified = (keyId: number): VerifiedKey => ({
  keyId,
  plan: PLANS[keyId % 4] ?? "free",
  limits: { perMinute: 1_000_000_000 - keyId, perDay: 1_000_000_000 },
  access: keyId % 3 ? "write" : "read",
  validUntil: keyId % 2 ? Infinity : 1.8e12 + keyId,
});

const SECRETS = Array.from({ length: 60 }, newSecret);
const step = fc.record({
  kind: fc.constantFrom("set", "set", "set", "keyChanged"),
  secret: fc.constantFrom(...SECRETS),
  keyId: fc.nat(12),
});
const steps = fc.array(step, { maxLength: 200, size: "max" });

test("returns what a Map returns, through any changes", () => {
  fc.assert(
    fc.property(steps, (steps) => {
      const cache = new KeyCache(60);
      const expected = new Map<string, VerifiedKey>();
      let revision = 0;
      for (const { kind, secret, keyId } of steps) {
        if (kind === "set") {
          cache.set(secret, verified(keyId), revision);
          expected.set(secret, verified(keyId));
        } else {
          cache.keyChanged(keyId, ++revision);
          for (const [secret, key] of expected) if (key.keyId === keyId) expected.delete(secret);
        }
      }
      for (const secret of SECRETS) expect(cache.get(secret)).toEqual(expected.get(secret));
    }),
    { numRuns: 200 },
  );
});

test("holds no more secrets than its bound, the newest among them, and never returns another key", () => {
  fc.assert(
    fc.property(steps, fc.integer({ min: 1, max: 9 }), (steps, maxKeys) => {
      const cache = new KeyCache(maxKeys);
      const added = new Map<string, VerifiedKey>();
      for (const { secret, keyId } of steps) {
        cache.set(secret, verified(keyId), 1);
        added.set(secret, verified(keyId));
        expect(cache.get(secret)).toEqual(verified(keyId));
      }
      const cached = SECRETS.filter((secret) => cache.get(secret) !== undefined);
      expect(cached).toHaveLength(Math.min(maxKeys, added.size));
      for (const secret of cached) expect(cache.get(secret)).toEqual(added.get(secret));
    }),
    { numRuns: 200 },
  );
});

test("finds each of 20,000 secrets until its key changes, and again after it was set", () => {
  const cache = new KeyCache(1_000_000);
  const secrets = Array.from({ length: 20_000 }, newSecret);
  const ids = () => secrets.map((secret) => cache.get(secret)?.keyId);
  const isKept = (id: number) => id % 3 === 0;
  const allIds = secrets.map((_, id) => id);
  secrets.forEach((secret, id) => cache.set(secret, verified(id), 1));
  expect(ids()).toEqual(allIds);
  for (const id of allIds) if (!isKept(id)) cache.keyChanged(id, 2);
  expect(ids()).toEqual(allIds.map((id) => (isKept(id) ? id : undefined)));
  secrets.forEach((secret, id) => isKept(id) || cache.set(secret, verified(id), 2));
  expect(ids()).toEqual(allIds);
});

test("remembers 100,000 changed keys, and starts empty again at the next one", () => {
  const cache = new KeyCache(10);
  const secret = newSecret();
  cache.set(secret, verified(0), 1);
  for (let id = 1; id <= 100_000; id++) cache.keyChanged(id, 2);
  expect(cache.get(secret)).toEqual(verified(0));
  cache.keyChanged(100_001, 2);
  expect(cache.get(secret)).toBeUndefined();
  const others = Array.from({ length: 12 }, newSecret);
  others.forEach((other, i) => cache.set(other, verified(i), 3));
  expect(others.filter((other) => cache.get(other) !== undefined)).toEqual(others.slice(2));
});

describe("a text that is nearly a cached secret", () => {
  const secret = newSecret();
  const tail = secret.slice(-36);
  const cache = new KeyCache(10);
  cache.set(secret, verified(1), 1);

  test("is found when it ends with the secret", () => {
    expect(cache.get(`Bearer ${secret}`)).toEqual(verified(1));
    expect(cache.get(`Bearer ${secret} `)).toBeUndefined();
  });

  test("is not found with any one character changed, missing or added", () => {
    for (let i = 0; i < tail.length; i++) {
      const other = tail[i] === "a" ? "b" : "a";
      expect(cache.get(`pet_live_${tail.slice(0, i)}${other}${tail.slice(i + 1)}`)).toBeUndefined();
      expect(cache.get(`pet_live_${tail.slice(0, i)}${tail.slice(i + 1)}`)).toBeUndefined();
      expect(cache.get(`${tail.slice(0, i + 1)}${other}${tail.slice(i + 1)}`)).toBeUndefined();
    }
  });

  test("is not found with a character of two bytes in place of one of them", () => {
    for (let i = 0; i < tail.length; i++) {
      const wide = String.fromCharCode(tail.charCodeAt(i) | 0x100);
      expect(cache.get(tail.slice(0, i) + wide + tail.slice(i + 1))).toBeUndefined();
    }
  });
});
