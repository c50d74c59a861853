import { expect, test } from "bun:test";
import { roleRules } from "../../src/config/sign-in-types.ts";
import { claimValues, grantedRole, seenClaims } from "../../src/domain/role-rules.ts";

const rulesOf = (text: string) => roleRules.parse(text) ?? [];

test("the highest role that a rule grants counts, whatever the order of rules and values", () => {
  const rules = rulesOf("groups=all:viewer,groups=admins:admin,groups=help:support");
  expect(grantedRole(rules, { groups: ["all", "help", "admins"] })).toBe("admin");
  expect(grantedRole(rules.toReversed(), { groups: ["help", "all"] })).toBe("support");
  expect(grantedRole(rules, { groups: "all" })).toBe("viewer");
});

test.each([
  {},
  { groups: [] },
  { groups: ["ADMINS", "admins2", "admin"] },
  { groups: { admins: true } },
  { groups: [["admins"]] },
  { group: ["admins"] },
  { groups: null },
])("no rule matches %j", (claims) => {
  expect(grantedRole(rulesOf("groups=admins:admin"), claims)).toBeUndefined();
});

test("a claim is found by its name, or by the path to it; inherited names are none", () => {
  const claims = {
    realm_access: { roles: ["ops"] },
    "https://example.com/roles": ["a"],
    "a.b": 1,
    hd: true,
    no: null,
  };
  expect(claimValues(claims, "realm_access.roles")).toEqual(["ops"]);
  expect(claimValues(claims, "https://example.com/roles")).toEqual(["a"]);
  expect(claimValues(claims, "a.b")).toEqual(["1"]);
  expect(claimValues(claims, "hd")).toEqual(["true"]);
  for (const name of ["constructor", "constructor.name", "__proto__", "hd.length", "no.roles"])
    expect(claimValues(claims, name)).toEqual([]);
});

test("the audit trail has the claims of the rules, 20 values of each and 100 characters of each value", () => {
  const groups = Array.from({ length: 25 }, (_, n) => `${n}`.padStart(150, "x"));
  const { "claim groups": seen = [], ...rest } = seenClaims(rulesOf("groups=a:viewer,hd=b:admin"), {
    groups,
  });
  expect([seen.length, seen[0]?.length, seen.at(-1)]).toEqual([21, 100, "and 5 more"]);
  expect(rest).toEqual({ "claim hd": [] });
  const shownOf = (count: number) =>
    seenClaims(rulesOf("groups=a:viewer"), { groups: groups.slice(0, count) });
  expect([20, 21].map((count) => shownOf(count)["claim groups"]?.slice(20))).toEqual([[], ["and 1 more"]]);
});
