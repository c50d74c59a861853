import { expect, test } from "bun:test";
import {
  actionNamed,
  auditEntry,
  auditView,
  changedFields,
  changeOf,
  shownAction,
} from "../../src/domain/audit.ts";

const by = { at: 0, actor: { kind: "server" } } as const;

test("a change has the values that differ, with null for a missing one", () => {
  expect(changeOf({ a: 1, b: ["x"], c: 2, d: 3 }, { a: 1, b: ["x"], c: 4, e: 5 })).toEqual({
    before: { c: 2, e: null },
    after: { c: 4, e: 5 },
  });
  expect(changeOf({ a: 1, b: ["x"] }, { a: 1, b: ["x"] })).toBeUndefined();
});

test("the fields of an entry are those before and those after, whatever their names are", () => {
  expect(changedFields({ a: 1, b: 2 }, { b: 3, constructor: 4 })).toEqual([
    { name: "a", before: 1, after: undefined },
    { name: "b", before: 2, after: 3 },
    { name: "constructor", before: undefined, after: 4 },
  ]);
  expect(changedFields(null, null)).toEqual([]);
});

test("a reason is one of the values after the change", () => {
  const target = { kind: "key", id: 7n } as const;
  expect(auditEntry("key.updated", 7, by)).toEqual({ ...by, action: "key.updated", target });
  expect(auditEntry("key.updated", 7n, { ...by, after: { a: 1 }, reason: "asked" })).toEqual({
    ...by,
    action: "key.updated",
    target,
    after: {
      a: 1,
      reason: "asked",
    },
  });
});

test("what is missing in an entry is null for operators", () => {
  const actor = { kind: "server", operator: null, name: null };
  const missing = { target: null, before: null, after: null };
  expect(auditView({ ...by, id: 1n, action: "data.imported" }) as unknown).toEqual({
    id: 1n,
    at: "1970-01-01T00:00:00.000Z",
    actor,
    action: "data.imported",
    ...missing,
  });
});

test("an action has its stored name and the one that it is shown by", () => {
  expect(["key.rolled", "key.rotated", "key.created", "key"].map(actionNamed) as unknown[]).toEqual([
    "key.rolled",
    "key.rolled",
    "key.created",
    undefined,
  ]);
  expect([shownAction("key.rolled"), shownAction("key.created")]).toEqual(["key.rotated", "key.created"]);
});
