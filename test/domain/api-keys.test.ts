import { expect, test } from "bun:test";
import {
  type ApiKey,
  apiKeyOf,
  credentialFailure,
  invalidFrom,
  keyNotActive,
  keyState,
  storedKeyOf,
} from "../../src/domain/api-keys.ts";

const key: ApiKey = { id: 1, name: "n", labels: [], plan: "free", access: "write", createdAt: 0 };

test("a credential is valid until the first of rotation and expiry, and not at all once it is revoked", () => {
  expect(invalidFrom({ key })).toBe(Infinity);
  expect(invalidFrom({ key, validUntil: 5 })).toBe(5);
  expect(invalidFrom({ key: { ...key, expiresAt: 4 }, validUntil: 5 })).toBe(4);
  // Whenever that was: the machine on which it was done may be ahead of this one.
  expect(invalidFrom({ key: { ...key, revokedAt: 1e15 }, validUntil: 5 })).toBe(-Infinity);
});

test("of several reasons why a credential is invalid, the last decision of an operator counts, then the first time", () => {
  const failure = (changes: Partial<ApiKey>, validUntil?: number) =>
    credentialFailure({ key: { ...key, ...changes }, ...(validUntil !== undefined && { validUntil }) });
  expect(failure({ revokedAt: 1, disabledAt: 1, expiresAt: 1 })).toBe("invalid_api_key");
  expect(failure({ disabledAt: 1, expiresAt: 1 })).toBe("disabled_api_key");
  expect(failure({ expiresAt: 5 })).toBe("expired_api_key");
  expect(failure({ expiresAt: 5 }, 5)).toBe("expired_api_key");
  expect(failure({ expiresAt: 6 }, 5)).toBe("invalid_api_key");
  expect(failure({}, 5)).toBe("invalid_api_key");
});

test("a key has one state, and from the instant at which it expires it is no longer active", () => {
  const state = (changes: Partial<ApiKey>, isBanned = true) =>
    keyState({ ...key, ...changes }, { isBanned, now: 5 });
  expect(state({ revokedAt: 9, expiresAt: 1, disabledAt: 1 })).toBe("revoked");
  expect(state({ expiresAt: 5, disabledAt: 1 })).toBe("expired");
  expect(state({ expiresAt: 6, disabledAt: 9 })).toBe("disabled");
  expect(state({ expiresAt: 6 })).toBe("banned");
  expect(state({}, false)).toBe("active");
  const message = (changes: Partial<ApiKey>) => keyNotActive({ ...key, ...changes }, 5, "rotated")?.message;
  expect([message({}), message({ expiresAt: 6 })]).toEqual([undefined, undefined]);
  expect(message({ revokedAt: 0, expiresAt: 0 })).toBe(
    "Key 1 was revoked at 1970-01-01T00:00:00.000Z and cannot be rotated; create a new key.",
  );
  expect(message({ expiresAt: 5 })).toBe(
    "Key 1 expired at 1970-01-01T00:00:00.005Z and cannot be rotated; a new expiry makes it valid again: petstore keys update 1 --expires 30d.",
  );
});

test("a key has limits of its own if both are stored", () => {
  const limits = { perMinute: 1, perDay: 2 };
  expect(storedKeyOf({ ...key, limits })).toEqual({ ...key, ...limits });
  expect(apiKeyOf({ ...key, ...limits })).toEqual({ ...key, limits });
  for (const half of [{}, { perMinute: 1 }, { perDay: 2 }])
    expect(apiKeyOf({ ...key, ...half })).toEqual(key);
});
