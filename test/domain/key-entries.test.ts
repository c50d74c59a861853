import { expect, test } from "bun:test";
import type { ApiKey, KeyChange } from "../../src/domain/api-keys.ts";
import {
  banEntry,
  keyCreationEntry,
  keyExpiryEntry,
  keyRotationEntry,
  keyUpdateEntry,
} from "../../src/domain/key-entries.ts";

const AT = Date.parse("2026-11-15T12:00:00Z");
const LATER = "2026-11-15T12:00:01.000Z";
const by = { at: AT, actor: { kind: "console" }, reason: "asked" } as const;
const key: ApiKey = { id: 7, name: "shop", labels: [], plan: "free", access: "write", createdAt: AT };
const entry = (action: string, more: object) => ({
  at: AT,
  actor: { kind: "console" },
  action,
  target: {
    kind: "key",
    id: 7n,
  },
  ...more,
});

test("the entry of a new key has what was given, and the hint of its secret", () => {
  const limits = { perMinute: 1, perDay: 2 };
  const secret = { hash: "secret", hint: "pet_live_aB3d…x9Kq" };
  expect(keyCreationEntry({ ...key, labels: ["eu"], owner: "ann", limits }, secret, by)).toEqual(
    entry("key.created", {
      after: {
        name: "shop",
        owner: "ann",
        labels: ["eu"],
        plan: "free",
        access: "write",
        ...limits,
        hint: secret.hint,
        reason: "asked",
      },
    }) as never,
  );
  const { after } = keyCreationEntry(key, secret, { at: AT, actor: by.actor });
  expect(after).toEqual({ name: "shop", plan: "free", access: "write", hint: secret.hint });
});

test("the entry of a rotation says until when earlier secrets work: not before the rotation", () => {
  for (const [overlapEndsAt, previousSecretsValidUntil] of [
    [AT + 1_000, LATER],
    [0, "2026-11-15T12:00:00.000Z"],
  ] as const)
    expect(keyRotationEntry(7, { hint: "h", overlapEndsAt }, by)).toEqual(
      entry("key.rolled", { after: { hint: "h", previousSecretsValidUntil, reason: "asked" } }) as never,
    );
});

test("the entries of an expiry and of a ban say whose key it is, if anybody's", () => {
  const expiresAt = AT + 1_000;
  const { reason: _, ...server } = by;
  for (const [owner, shown] of [
    [{ owner: "ann" }, "ann"],
    [{}, null],
  ] as const) {
    expect(keyExpiryEntry({ ...key, ...owner, expiresAt }, server)).toEqual(
      entry("key.expires-soon", { after: { name: "shop", owner: shown, expiresAt: LATER } }) as never,
    );
    expect(banEntry(7, { ...key, ...owner }, { ...server, bannedUntil: AT + 1_000 })).toEqual(
      entry("key.banned", {
        after: { name: "shop", owner: shown, plan: "free", bannedUntil: LATER },
      }) as never,
    );
  }
  expect(banEntry(7, undefined, { ...server, bannedUntil: AT + 1_000 }).after).toEqual({
    bannedUntil: LATER,
  });
});

test.each<[change: KeyChange, action: string | undefined]>([
  [{ plan: "pro" }, "key.updated"],
  [{ plan: "free" }, undefined],
  [{ revokedAt: AT }, "key.revoked"],
  [{ disabledAt: AT }, "key.disabled"],
  [{ unbannedAt: AT }, "key.unbanned"],
])("a change to %j has the entry %s", (change, action) => {
  const after = { ...key, ...change } as ApiKey;
  expect(keyUpdateEntry({ before: key, after, change }, by)?.action as string | undefined).toBe(action);
});

test("a key that is enabled again has the time at which it was disabled in its entry", () => {
  const before = { ...key, disabledAt: AT + 1_000 };
  expect(keyUpdateEntry({ before, after: key, change: { disabledAt: null } }, by)).toEqual(
    entry("key.enabled", {
      before: { disabledAt: LATER },
      after: { disabledAt: null, reason: "asked" },
    }) as never,
  );
});
