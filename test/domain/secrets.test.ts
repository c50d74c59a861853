import { describe, expect, test } from "bun:test";
import * as fc from "fast-check";
import { crc32 } from "node:zlib";
import {
  hashSecret,
  isWellFormedSecret,
  generateSecret,
  canBePartOfHint,
  hintOf,
} from "../../src/domain/secrets.ts";
import { ENVIRONMENTS, otherEnvironment } from "../../src/domain/environments.ts";

const BASE62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const PREFIX = { production: "pet_live_", staging: "pet_test_" };

describe.each(ENVIRONMENTS)("a secret for %s", (environment) => {
  const other = otherEnvironment(environment);

  test("has its prefix, 30 random characters and 6 of checksum", () => {
    const secret = generateSecret(environment);
    expect(secret).toMatch(new RegExp(`^${PREFIX[environment]}[0-9A-Za-z]{36}$`));
    const digits = secret.slice(-6).split("");
    const check = digits.reduce((sum, digit) => sum * 62 + BASE62.indexOf(digit), 0);
    expect(check).toBe(crc32(secret.slice(0, -6)));
  });

  test("is plausible in its own environment and in no other", () => {
    for (let i = 0; i < 200; i++) {
      const secret = generateSecret(environment);
      expect(isWellFormedSecret(secret, environment)).toBe(true);
      expect(isWellFormedSecret(secret, other)).toBe(false);
    }
  });

  test("with any single character changed, lost or added is always refused", () => {
    const secret = generateSecret(environment);
    const accepted: string[] = [];
    const printable = Array.from({ length: 95 }, (_, i) => String.fromCharCode(32 + i));
    for (let at = 0; at < secret.length; at++) {
      for (const character of printable) {
        if (character === secret[at]) continue;
        const changed = secret.slice(0, at) + character + secret.slice(at + 1);
        if (isWellFormedSecret(changed, environment)) accepted.push(changed);
      }
      for (const other of [
        secret.slice(0, at) + secret.slice(at + 1),
        `${secret.slice(0, at)}a${secret.slice(at)}`,
      ])
        if (isWellFormedSecret(other, environment)) accepted.push(other);
    }
    expect(accepted).toEqual([]);
  });

  test("moved to the other environment by its prefix is refused: the checksum covers it", () => {
    const moved = PREFIX[other] + generateSecret(environment).slice(PREFIX[environment].length);
    expect(isWellFormedSecret(moved, other)).toBe(false);
  });
});

test("no random text is a plausible secret", () => {
  const lookalike = fc.string({ unit: fc.constantFrom(...BASE62), minLength: 36, maxLength: 36 });
  const text = fc.oneof(
    fc.string(),
    lookalike,
    lookalike.map((tail) => `pet_live_${tail}`),
  );
  // Fixed, because one lookalike in some billions is bound to be plausible.
  fc.assert(
    fc.property(text, (secret) => expect(isWellFormedSecret(secret, "production")).toBe(false)),
    { seed: 7 },
  );
});

test("a secret with a line break behind it is refused", () => {
  expect(isWellFormedSecret(`${generateSecret("production")}\n`, "production")).toBe(false);
});

test("secrets do not repeat, and every character of the alphabet is about equally likely", () => {
  const count = 2_000;
  const secrets = new Set(Array.from({ length: count }, () => generateSecret("production")));
  expect(secrets.size).toBe(count);
  const random = [...secrets].map((secret) => secret.slice(9, 39)).join("");
  const expected = (count * 30) / 62;
  for (const character of BASE62) {
    const seen = random.split(character).length - 1;
    // Eight standard deviations: chance does not reach this far, a biased choice does.
    expect(Math.abs(seen - expected)).toBeLessThan(8 * Math.sqrt(expected));
  }
});

test("a secret is stored as its SHA-256 in hexadecimal", () => {
  expect(hashSecret("abc")).toBe("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
});

test.each(ENVIRONMENTS)(
  "the hint of a secret for %s shows its prefix and four characters at each end",
  (environment) => {
    const secret = generateSecret(environment);
    const hint = hintOf(secret);
    expect(hint).toBe(`${PREFIX[environment]}${secret.slice(9, 13)}…${secret.slice(-4)}`);
    expect(hint).toHaveLength(18);
    for (let start = 0; start < 18; start++)
      for (let end = start + 4; end <= 18; end++)
        expect(canBePartOfHint(hint.slice(start, end).toUpperCase())).toBe(true);
  },
);

test("most words cannot be a part of a hint", () => {
  for (const text of ["abc", "nobody", "petstore", "pet_liv1", "e_live_12345", "xe_aB3d", "a-b-c", "one two"])
    expect(canBePartOfHint(text)).toBe(false);
});
