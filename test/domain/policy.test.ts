import { expect, test } from "bun:test";
import { applyPolicyChange, DEFAULT_POLICY, type Policy, policyEntries } from "../../src/domain/policy.ts";

const by = { at: 0, actor: { kind: "server" } } as const;
const change = {
  plans: { pro: { perDay: 7 } },
  ban: { lengthMs: 3_000_000 },
};
const changed: Policy = {
  plans: { ...DEFAULT_POLICY.plans, pro: { perMinute: 300, perDay: 7 } },
  ban: { strikes: 10, graceMs: 1_000, lengthMs: 3_000_000, maxLengthMs: 3_000_000 },
};

test("a change of the policy leaves the rest as it was, and the longest ban is no shorter than a first one", () => {
  expect(applyPolicyChange(DEFAULT_POLICY, change)).toEqual(changed);
  expect(applyPolicyChange(changed, {})).toEqual(changed);
  expect(applyPolicyChange(DEFAULT_POLICY, { ban: { lengthMs: 1_000 } }).ban).toEqual({
    ...DEFAULT_POLICY.ban,
    lengthMs: 1_000,
  });
});

test("an entry has the values that differ, before and after", () => {
  expect(policyEntries(DEFAULT_POLICY, changed, by)).toEqual([
    { ...by, action: "plan.updated", before: { perDay: 10_000 }, after: { plan: "pro", perDay: 7 } },
    {
      ...by,
      action: "ban-rules.updated",
      before: { lengthMs: 300_000, maxLengthMs: 2_400_000 },
      after: { lengthMs: 3_000_000, maxLengthMs: 3_000_000 },
    },
  ]);
  expect(policyEntries(changed, changed, by)).toEqual([]);
});
