import { expect, test } from "bun:test";
import type { KeyChange, NewKey } from "../../src/domain/api-keys.ts";
import { DEFAULT_POLICY, type PolicyChange } from "../../src/domain/policy.ts";
import { keyDifferences } from "../../src/store/sqlite/key-differences.ts";
import { openSqlite } from "../../src/store/sqlite/open-sqlite.ts";
import { copySnapshot } from "../../src/store/sqlite/snapshot.ts";
import { disposableDirectory } from "../disposable-directory.ts";
import { BY, storedSecret } from "../key-store-arguments.ts";

const NOW = 1_000_000;
const limits = (perMinute: number, perDay: number) =>
  ({ plan: "enterprise", limits: { perMinute, perDay } }) as const;

/** Keys of a backup, what has changed since, and what that restricts. */
const KEYS: readonly [before: Partial<NewKey>, change: KeyChange, restricted: string][] = [
  [{}, { name: "other" }, ""],
  [{}, { revokedAt: NOW }, "revoked_at"],
  [{}, { revokedAt: NOW, disabledAt: NOW, access: "read" }, "revoked_at"],
  [{ expiresAt: NOW }, { revokedAt: NOW }, "revoked_at"],
  [{ plan: "pro" }, { plan: "free" }, "plan"],
  [{ plan: "free" }, { plan: "pro" }, ""],
  [limits(10, 100), limits(9, 100), "plan"],
  [limits(10, 100), limits(11, 99), "plan"],
  [limits(10, 100), limits(10, 100), ""],
  [limits(10, 100), { plan: "free" }, ""],
  [limits(10, 10_000), { plan: "free" }, "plan"],
  [{ access: "write" }, { access: "read" }, "access"],
  [{ access: "read" }, { access: "write" }, ""],
  [{ access: "read" }, { access: "read" }, ""],
  [{}, { disabledAt: NOW }, "disabled_at"],
  [{ disabledAt: 5 }, { disabledAt: NOW }, ""],
  [{ disabledAt: 5 }, { disabledAt: null }, ""],
  [{}, { expiresAt: NOW + 50 }, "expires_at"],
  [{ expiresAt: NOW + 50 }, { expiresAt: NOW + 49 }, "expires_at"],
  [{ expiresAt: NOW + 50 }, { expiresAt: NOW + 50 }, ""],
  [{ expiresAt: NOW + 50 }, { expiresAt: null }, ""],
  [{ expiresAt: NOW + 1 }, { disabledAt: NOW }, "disabled_at"],
  [{ expiresAt: NOW }, { disabledAt: NOW }, ""],
  [{}, { disabledAt: NOW, access: "read" }, "access disabled_at"],
];

test("a backup is compared with what restricts keys, plans and bans since", async () => {
  using directory = disposableDirectory();
  const [later, earlier] = [directory.path("later.db"), directory.path("earlier.db")];
  const { keys, policies, close } = openSqlite(later);
  let secrets = 0;
  const create = async (key: Partial<NewKey> = {}) => {
    const created = { name: "app", plan: "free", createdAt: 0, ...key } as const;
    return (await keys.createKey(created, storedSecret(++secrets), BY)).id;
  };
  const rotate = (id: number, overlapEndsAt: number) =>
    keys.addSecret(id, { ...storedSecret(++secrets), overlapEndsAt }, BY);
  const ids: number[] = [];
  for (const [before] of KEYS) ids.push(await create(before));
  const [rotated, shortened, same, expired] = [
    await create(),
    await create(),
    await create(),
    await create({ expiresAt: NOW }),
  ];
  for (const id of [shortened, same]) await rotate(id, NOW + 9);
  copySnapshot(later, earlier);
  const compare = () => keyDifferences(earlier, later, NOW);
  const none = { revoked_at: [], plan: [], access: [], disabled_at: [], expires_at: [] };
  const others = { rotated: [], created: [], plans: [], ban: undefined, operators: [] };
  expect(compare()).toEqual({ restricted: none, ...others });

  for (const [i, [, change]] of KEYS.entries()) await keys.updateKey(ids[i] ?? 0, change, BY);
  await rotate(rotated, NOW + 9);
  await rotate(shortened, NOW + 8);
  await rotate(expired, NOW + 9);
  const created = [await create(), await create()];
  const { restricted, ...rest } = compare();
  const found = ids.map((id) =>
    Object.entries(restricted).flatMap(([column, some]) =>
      some.some((key) => key.id === id) ? [column] : [],
    ),
  );
  expect(found.map((columns) => columns.join(" "))).toEqual(KEYS.map(([, , columns]) => columns));
  expect(restricted.plan).toContainEqual({ id: 7, expiresAt: undefined, ...limits(9, 100) });
  expect(restricted.expires_at).toContainEqual({
    id: 18,
    expiresAt: NOW + 50,
    plan: "free",
    limits: undefined,
  });
  expect(rest).toEqual({ ...others, rotated: [rotated, shortened], created });

  const { strikes, graceMs, lengthMs, maxLengthMs } = DEFAULT_POLICY.ban;
  const { perMinute, perDay } = DEFAULT_POLICY.plans.pro;
  const isFound = async (change: PolicyChange) => {
    await policies.updatePolicy({ ...DEFAULT_POLICY, ...change }, BY);
    const { plans, ban } = compare();
    return [plans, ban];
  };
  for (const change of [
    { strikes: strikes - 1 },
    { graceMs: graceMs - 1 },
    { lengthMs: lengthMs + 1 },
    { maxLengthMs: maxLengthMs + 1 },
  ])
    expect(await isFound({ ban: { ...DEFAULT_POLICY.ban, ...change } })).toEqual([
      [],
      { ...DEFAULT_POLICY.ban, ...change },
    ]);
  const looser = {
    strikes: strikes + 1,
    graceMs: graceMs + 1,
    lengthMs: lengthMs - 1,
    maxLengthMs: maxLengthMs - 1,
  };
  expect(await isFound({ ban: looser })).toEqual([[], undefined]);
  for (const pro of [
    { perMinute: perMinute - 1, perDay: perDay + 1 },
    { perMinute: perMinute + 1, perDay: perDay - 1 },
  ])
    expect(await isFound({ plans: { ...DEFAULT_POLICY.plans, pro } })).toEqual([
      [{ name: "pro", ...pro }],
      undefined,
    ]);
  const higher = { perMinute: perMinute + 1, perDay };
  expect(await isFound({ plans: { ...DEFAULT_POLICY.plans, pro: higher } })).toEqual([[], undefined]);
  await close();
});

test("a backup is compared with what revokes, rotates and restricts operators since", async () => {
  using directory = disposableDirectory();
  const [later, earlier] = [directory.path("later.db"), directory.path("earlier.db")];
  const { operators, close } = openSqlite(later);
  const names = ["revoked", "rotated", "lower", "higher", "expires", "earlier", "later", "same", "gone"];
  for (const [i, name] of names.entries()) {
    const isExpiring = ["earlier", "later"].includes(name);
    const operator = { name, role: "support", ...(isExpiring && { expiresAt: NOW + 50 }) } as const;
    await operators.createOperator(operator, storedSecret(i), BY);
  }
  const idOf = (name: string) => names.indexOf(name) + 1;
  await operators.revokeOperator(idOf("gone"), BY);
  copySnapshot(later, earlier);
  await operators.revokeOperator(idOf("revoked"), BY);
  await operators.rotateOperator(idOf("rotated"), storedSecret(20), BY);
  await operators.updateOperator(idOf("lower"), { role: "viewer" }, BY);
  await operators.updateOperator(idOf("higher"), { role: "admin" }, BY);
  for (const [name, after] of [
    ["expires", 50],
    ["earlier", 49],
    ["later", 51],
  ] as const)
    await operators.updateOperator(idOf(name), { expiresAt: NOW + after }, BY);
  await operators.createOperator({ name: "new", role: "viewer" }, storedSecret(21), BY);
  const { operators: changed } = keyDifferences(earlier, later, NOW);
  expect(changed).toEqual(["earlier", "expires", "higher", "lower", "revoked", "rotated"]);
  await close();
});
