import { expect, test } from "bun:test";
import {
  applyPolicyChange,
  DEFAULT_POLICY,
  type Policy,
  policyEntries,
  policyOf,
} from "../../src/domain/policy.ts";

const by = { at: 0, actor: { kind: "server" } } as const;
const change = {
  plans: { pro: { perDay: 7 } },
  ban: { lengthMs: 3_000_000 },
  sharedValues: { "audit-retention": null },
};
const changed: Policy = {
  plans: { ...DEFAULT_POLICY.plans, pro: { perMinute: 300, perDay: 7 } },
  ban: { strikes: 10, graceMs: 1_000, lengthMs: 3_000_000, maxLengthMs: 3_000_000 },
  sharedValues: { "audit-retention": null },
};

test("a change of the policy leaves the rest as it was, and the longest ban is no shorter than a first one", () => {
  expect(applyPolicyChange(DEFAULT_POLICY, change)).toEqual(changed);
  expect(applyPolicyChange(changed, {})).toEqual(changed);
  expect(applyPolicyChange(DEFAULT_POLICY, { ban: { lengthMs: 1_000 } }).ban).toEqual({
    ...DEFAULT_POLICY.ban,
    lengthMs: 1_000,
  });
});

test("what is not stored has its default", () => {
  expect(policyOf({ plans: {}, sharedValues: {} })).toEqual(DEFAULT_POLICY);
  expect(policyOf(changed)).toEqual(changed);
});

test("an entry has the values that differ; a first one of limits or ban rules has none before", () => {
  const retention = 400 * 86_400_000;
  const values = {
    ...by,
    action: "settings.updated",
    before: { "audit-retention": retention },
    after: { "audit-retention": null },
  } as const;
  const limits = { ...by, action: "plan.updated", after: { plan: "pro", perDay: 7 } } as const;
  const ban = {
    ...by,
    action: "ban-rules.updated",
    after: { lengthMs: 3_000_000, maxLengthMs: 3_000_000 },
  } as const;
  expect(policyEntries({ plans: {}, sharedValues: {} }, changed, by)).toEqual([limits, ban, values]);
  expect(policyEntries(DEFAULT_POLICY, changed, by)).toEqual([
    { ...limits, before: { perDay: 10_000 } },
    { ...ban, before: { lengthMs: 300_000, maxLengthMs: 2_400_000 } },
    values,
  ]);
  expect(policyEntries(changed, changed, by)).toEqual([]);
});
