import { expect, test } from "bun:test";
import {
  allowsMore,
  isLastingAdmin,
  leastRoleOf,
  mayCall,
  type Operator,
  operatorState,
  operatorUpdateEntry,
  ROLES,
  tokenExpired,
} from "../../src/domain/operators.ts";

const ann: Operator = { id: 1, name: "ann", role: "support", hint: "", createdAt: 0, issuedAt: 0 };

test("each role may do what the roles before it may do, and more", () => {
  const allowed = ROLES.map((role) => ROLES.filter((least) => mayCall(role, least)));
  expect(allowed).toEqual(ROLES.map((_, i) => ROLES.slice(0, i + 1)));
  expect([leastRoleOf({ method: "GET" }), leastRoleOf({ method: "POST" })]).toEqual(["viewer", "admin"]);
  expect(leastRoleOf({ method: "GET", role: "metrics" })).toBe("metrics");
});

test("a higher role allows more, and so does a later expiry", () => {
  const before = { role: "support", expiresAt: 5 } as const;
  const more = (change: Partial<Pick<Operator, "role" | "expiresAt">>) =>
    allowsMore({ ...before, ...change }, before);
  expect([more({}), more({ role: "viewer" }), more({ expiresAt: 4 })]).toEqual([false, false, false]);
  expect([more({ role: "admin" }), more({ expiresAt: 6 })]).toEqual([true, true]);
  expect([allowsMore({ role: "viewer" }, before), allowsMore(before, { role: "support" })]).toEqual([
    true,
    false,
  ]);
  expect(isLastingAdmin({ role: "admin" })).toBeTrue();
  expect([isLastingAdmin({ role: "admin", expiresAt: 5 }), isLastingAdmin(ann)]).toEqual([false, false]);
});

test("an operator expires at an instant, and a revoked one stays revoked", () => {
  const states = [{}, { expiresAt: 6 }, { expiresAt: 5 }, { expiresAt: 5, revokedAt: 9 }];
  expect(states.map((each) => operatorState(each, 5))).toEqual(["active", "active", "expired", "revoked"]);
  const message = (more: Partial<Operator>) => tokenExpired({ ...ann, expiresAt: 5, ...more }).message;
  expect(message({})).toBe(
    "The token of ann expired at 1970-01-01T00:00:00.005Z. An admin makes it valid again: petstore operators update ann --expires 90d",
  );
  expect(message({ subject: "x" })).toBe(
    "The sign-in of ann expired at 1970-01-01T00:00:00.005Z. Sign in again with the provider.",
  );
});

test("the entry of a change has the name and what differs", () => {
  const by = { at: 0, actor: { kind: "server" } } as const;
  expect(operatorUpdateEntry(ann, { ...ann, hint: "new" }, by)).toBeUndefined();
  expect(operatorUpdateEntry(ann, { ...ann, role: "admin", expiresAt: 5, subject: "s" }, by)).toEqual({
    ...by,
    action: "operator.updated",
    target: { kind: "operator", id: 1n },
    before: { role: "support", expiresAt: null, subject: null },
    after: { name: "ann", role: "admin", expiresAt: "1970-01-01T00:00:00.005Z", subject: "s" },
  });
});
