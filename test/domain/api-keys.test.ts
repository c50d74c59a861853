import { expect, test } from "bun:test";
import { type ApiKey, invalidFrom } from "../../src/domain/api-keys.ts";

test("a credential is valid until the first of rotation and expiry, and not at all once it is revoked", () => {
  const key: ApiKey = { id: 1, name: "n", labels: [], plan: "free", access: "write", createdAt: 0 };
  expect(invalidFrom({ key })).toBe(Infinity);
  expect(invalidFrom({ key, validUntil: 5 })).toBe(5);
  expect(invalidFrom({ key: { ...key, expiresAt: 4 }, validUntil: 5 })).toBe(4);
  // Whenever that was: the machine on which it was done may be ahead of this one.
  expect(invalidFrom({ key: { ...key, revokedAt: 1e15 }, validUntil: 5 })).toBe(-Infinity);
});
