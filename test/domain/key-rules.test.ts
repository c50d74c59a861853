import { expect, test } from "bun:test";
import type { ApiKey, KeyChange } from "../../src/domain/api-keys.ts";
import { invalidKeyField } from "../../src/domain/key-rules.ts";

const limits = { perMinute: 1, perDay: 2 };
const free: ApiKey = { id: 1, name: "n", labels: [], plan: "free", access: "write", createdAt: 0 };
const enterprise: ApiKey = { ...free, plan: "enterprise", limits };
const NOW = 5;

const REQUIRED = "limits must be given for the enterprise plan: each key has its own limits.";
const onlyEnterprise = (plan: string) =>
  `limits must be given for the enterprise plan only; the plan is ${plan}.`;

test.each<[fields: KeyChange, invalid: string | undefined, key: ApiKey | undefined]>([
  [{ plan: "enterprise" }, REQUIRED, undefined],
  [{ plan: "enterprise" }, REQUIRED, free],
  [{ plan: "enterprise" }, undefined, enterprise],
  [{ plan: "enterprise", limits }, undefined, undefined],
  [{ plan: "enterprise", limits }, undefined, free],
  [{ plan: "pro", limits }, onlyEnterprise("pro"), undefined],
  [{ plan: "pro", limits }, onlyEnterprise("pro"), enterprise],
  [{ limits }, onlyEnterprise("free"), free],
  [{ limits }, undefined, enterprise],
  [{ plan: "pro" }, undefined, enterprise],
  [{ name: "x" }, undefined, enterprise],
  [{ name: "x" }, undefined, free],
  [{ expiresAt: NOW }, "expiresAt must be in the future.", free],
  [{ expiresAt: NOW + 1 }, undefined, free],
  [{ expiresAt: null }, undefined, free],
  [{ labels: ["a", "b"] }, undefined, free],
  [{ labels: ["a", "b", "A"] }, expect.stringMatching(/^labels must be at most 20 different labels/), free],
  [{ labels: ["a", "b,c"] }, expect.stringMatching(/without commas\.$/), free],
  [{ notes: "one\n\ttwo" }, undefined, free],
  [{ notes: "\u001b" }, expect.stringMatching(/^notes must be 1 to 2,000 characters/), free],
])("a key with %j: %p", (fields, invalid, key) => {
  expect(invalidKeyField(fields, { now: NOW, ...(key && { key }) })?.message).toEqual(invalid as string);
});
