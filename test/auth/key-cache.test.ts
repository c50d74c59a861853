import { describe, expect, test } from "bun:test";
import * as fc from "fast-check";
import { generateSecret } from "../../src/domain/api-keys.ts";
import { KeyCache, NONE } from "../../src/auth/key-cache.ts";
import { KnownLists } from "../../src/auth/hash-lists.ts";
import { BY_KEY, BY_SECRET, firstWord, KnownRecords, type Opens } from "../../src/auth/key-records.ts";

const mint = () => generateSecret("production").slice(-36);
const opens = (keyId: number): Opens => ({
  keyId,
  limits: { perMinute: keyId + 1, perDay: 1_000_000_000 },
  validUntil: keyId % 2 ? Infinity : 1.8e12 + keyId,
});

function openedBy(known: KeyCache, secret: string): Opens | undefined {
  const record = known.find(secret, 0);
  if (record === NONE) return undefined;
  return { keyId: known.keyId(record), limits: known.limits(record), validUntil: known.validUntil(record) };
}

const SECRETS = Array.from({ length: 60 }, mint);
const step = fc.record({
  kind: fc.constantFrom("add", "add", "add", "forget", "forgetKey"),
  secret: fc.constantFrom(...SECRETS),
  keyId: fc.nat(12),
});
const steps = fc.array(step, { maxLength: 200, size: "max" });

describe("known secrets", () => {
  test("what they open is what a Map says, through any additions and removals", () => {
    fc.assert(
      fc.property(steps, (steps) => {
        const known = new KeyCache(SECRETS.length);
        const expected = new Map<string, Opens>();
        for (const { kind, secret, keyId } of steps) {
          if (kind === "add") {
            known.add(secret, opens(keyId));
            expected.set(secret, opens(keyId));
          } else if (kind === "forget") {
            known.forget(secret);
            expected.delete(secret);
          } else {
            known.forgetKey(keyId);
            for (const [secret, one] of expected) if (one.keyId === keyId) expected.delete(secret);
          }
          expect(known.size).toBe(expected.size);
        }
        for (const secret of SECRETS) expect(openedBy(known, secret)).toEqual(expected.get(secret));
      }),
      { numRuns: 200 },
    );
  });

  test("at the bound there are never more, the newest is among them, and none opens what it should not", () => {
    fc.assert(
      fc.property(steps, fc.integer({ min: 1, max: 9 }), (steps, max) => {
        const known = new KeyCache(max);
        const added = new Map<string, Opens>();
        for (const { kind, secret, keyId } of steps) {
          if (kind === "forgetKey") {
            known.forgetKey(keyId);
            for (const [secret, one] of added) if (one.keyId === keyId) added.delete(secret);
            continue;
          }
          known.add(secret, opens(keyId));
          added.set(secret, opens(keyId));
          expect(openedBy(known, secret)).toEqual(opens(keyId));
          expect(known.size).toBeLessThanOrEqual(max);
        }
        for (const secret of SECRETS)
          expect([undefined, added.get(secret)]).toContainEqual(openedBy(known, secret));
      }),
      { numRuns: 200 },
    );
  });

  test("at the bound the one that was learned first goes first", () => {
    const known = new KeyCache(3);
    const secrets = Array.from({ length: 8 }, mint);
    secrets.forEach((secret, i) => known.add(secret, opens(i)));
    expect(secrets.map((secret) => known.find(secret, 0) !== NONE)).toEqual([
      ...Array.from({ length: 5 }, () => false),
      ...Array.from({ length: 3 }, () => true),
    ]);
  });

  test("of 20,000, over many pages and splits, each is found until it is forgotten", () => {
    const known = new KeyCache(1_000_000);
    const secrets = Array.from({ length: 20_000 }, mint);
    secrets.forEach((secret, i) => known.add(secret, opens(i)));
    secrets.forEach((secret, i) => expect(openedBy(known, secret)?.keyId).toBe(i));
    secrets.forEach((_, i) => i % 3 === 0 || known.forgetKey(i));
    secrets.forEach((secret, i) => expect(openedBy(known, secret)?.keyId).toBe(i % 3 === 0 ? i : undefined));
    secrets.forEach((secret, i) => i % 3 === 0 || known.add(secret, opens(i + 7)));
    secrets.forEach((secret, i) => expect(openedBy(known, secret)?.keyId).toBe(i % 3 === 0 ? i : i + 7));
  });

  test("a key of 2,000 secrets is forgotten with all of them", () => {
    const known = new KeyCache(1_000_000);
    const secrets = Array.from({ length: 2_000 }, mint);
    for (const secret of secrets) known.add(secret, opens(7));
    known.add(mint(), opens(8));
    known.forgetKey(7);
    expect(known.size).toBe(1);
    expect(secrets.filter((secret) => known.find(secret, 0) !== NONE)).toEqual([]);
  });
});

test("lists stay short however many records there are", () => {
  const records = new KnownRecords();
  const [bySecret, byKey] = [new KnownLists(records, BY_SECRET), new KnownLists(records, BY_KEY)];
  const secrets = Array.from({ length: 20_000 }, mint);
  const before = (lists: KnownLists, word: number, record: number) => {
    let count = 0;
    for (let one = lists.first(word); one !== record; one = lists.next(one)) count++;
    return count;
  };
  secrets.forEach((secret, i) => {
    records.open(i);
    records.write(i, secret, opens(i));
    bySecret.add(i);
    byKey.add(i);
  });
  let [sum, longest] = [0, 0];
  secrets.forEach((secret, i) => {
    for (const count of [before(bySecret, firstWord(secret, 0), i), before(byKey, i, i)]) {
      sum += count;
      longest = Math.max(longest, count);
    }
  });
  expect(sum / (2 * secrets.length)).toBeLessThan(0.5);
  expect(longest).toBeLessThan(16);
});

describe("what is not quite a known secret", () => {
  const secret = mint();
  const known = new KeyCache(10);
  known.add(secret, opens(1));

  test("is found only from where it begins", () => {
    expect(known.find(`Bearer pet_live_${secret}`, 16)).not.toBe(NONE);
    expect(known.find(`Bearer pet_live_${secret}`, 15)).toBe(NONE);
    expect(known.find(secret, 1)).toBe(NONE);
  });

  test("is unknown with any one character changed, missing or added", () => {
    for (let i = 0; i < secret.length; i++) {
      const other = secret[i] === "a" ? "b" : "a";
      expect(known.find(secret.slice(0, i) + other + secret.slice(i + 1), 0)).toBe(NONE);
      expect(known.find(secret.slice(0, i) + secret.slice(i + 1), 0)).toBe(NONE);
      expect(known.find(secret.slice(0, i) + other + secret.slice(i), 0)).toBe(NONE);
    }
  });

  test("is unknown with two characters folded into one of two bytes", () => {
    for (let i = 0; i < secret.length; i += 2) {
      const folded = String.fromCharCode(secret.charCodeAt(i) | (secret.charCodeAt(i + 1) << 8), 0);
      expect(known.find(secret.slice(0, i) + folded + secret.slice(i + 2), 0)).toBe(NONE);
    }
  });

  test("is unknown with the same first four characters", () => {
    expect(known.find(secret.slice(0, 4) + mint().slice(4), 0)).toBe(NONE);
  });
});

test("a number that a record has no room for is not remembered, rather than remembered wrong", () => {
  const known = new KeyCache(10);
  const secret = mint();
  known.add(secret, { ...opens(1), keyId: 2 ** 32 });
  expect(known.find(secret, 0)).toBe(NONE);
  known.add(secret, { ...opens(1), keyId: 2 ** 32 - 1 });
  expect(openedBy(known, secret)?.keyId).toBe(2 ** 32 - 1);
  known.forgetKey(2 ** 32 - 1);
  expect(known.size).toBe(0);
});
