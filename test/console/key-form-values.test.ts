import { expect, test } from "bun:test";
import { changesOf } from "../../src/console/changes.ts";
import { localInputOf } from "../../src/pages/format.ts";
import { formValuesOf, type KeyFormValues, newKeyOf } from "../../src/console/key-form-values.ts";

const KEY = {
  id: 7,
  name: "mobile app",
  owner: "mobile@example.com",
  notes: null,
  labels: ["eu", "mobile"],
  plan: "enterprise",
  limits: { perMinute: 5_000, perDay: 100_000 },
  access: "write",
  state: "active",
  secrets: [],
  usage: null,
  strikes: null,
  bannedUntil: null,
  createdAt: "2026-11-01T00:00:00.000Z",
  expiresAt: "2027-01-01T12:30:45.000Z",
  revokedAt: null,
  lastUsedAt: null,
} as const;

const sent = (before: KeyFormValues, after: KeyFormValues) => changesOf(newKeyOf(before), newKeyOf(after));

test("a form that was not touched changes nothing, not even the seconds of the expiry", () => {
  const values = formValuesOf(KEY);
  expect(sent(values, { ...values })).toEqual({});
});

test("the form of a new key is empty, and that of a key has its values, with limits for Enterprise alone", () => {
  const empty = {
    name: "",
    owner: "",
    labels: "",
    notes: "",
    plan: "free",
    perMinute: "",
    perDay: "",
    access: "write",
    expiresAt: "",
  };
  expect<object>(formValuesOf()).toEqual(empty);
  expect<object>(formValuesOf({ ...KEY, access: "read" })).toEqual({
    ...empty,
    name: "mobile app",
    owner: "mobile@example.com",
    labels: "eu, mobile",
    plan: "enterprise",
    perMinute: "5000",
    perDay: "100000",
    access: "read",
    expiresAt: localInputOf(KEY.expiresAt),
  });
  const pro = {
    ...KEY,
    owner: null,
    notes: "of the shop",
    labels: [],
    plan: "pro",
    expiresAt: null,
  } as const;
  expect<object>(formValuesOf(pro)).toEqual({
    ...empty,
    name: "mobile app",
    notes: "of the shop",
    plan: "pro",
  });
});

test("only the fields that differ are sent", () => {
  const values = formValuesOf(KEY);
  expect(sent(values, { ...values, name: " web app ", labels: "eu, web, eu,", owner: "" })).toEqual({
    name: "web app",
    labels: ["eu", "web"],
    owner: null,
  });
  expect(sent(values, { ...values, expiresAt: "" })).toEqual({ expiresAt: null });
});

test("limits go with the enterprise plan alone", () => {
  const values = formValuesOf(KEY);
  expect(sent(values, { ...values, perMinute: "6000" })).toEqual({
    limits: { perMinute: 6_000, perDay: 100_000 },
  });
  expect(sent(values, { ...values, plan: "pro" })).toEqual({ plan: "pro" });
  expect(newKeyOf({ ...formValuesOf(), name: "a", plan: "free", perMinute: "5" })).toEqual({
    name: "a",
    owner: null,
    notes: null,
    labels: [],
    plan: "free",
    access: "write",
    expiresAt: null,
  });
});
