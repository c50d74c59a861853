import { ACCESS_LEVELS } from "../domain/api-keys.ts";
import { KEY_LABEL, KEY_NAME, KEY_NOTES, KEY_OWNER, lineOf } from "../domain/key-fields.ts";
import { MAX_OVERLAP_MS } from "../domain/key-management.ts";
import { KEY_STATES } from "../domain/key-view.ts";
import { PLANS } from "../domain/plans.ts";
import type { Options } from "./parse-options.ts";
import { durationOr, pointInTime } from "./time-types.ts";
import { boolean, choice, duration, list, requestCount, text, type ValueType } from "./value-types.ts";

const SECOND = 1_000;
const DAY = 86_400 * SECOND;

const KEY_ID = /^[1-9]\d{0,15}$/;

/** A key's ID, never its secret: other users of the machine can read the arguments of a process. */
export const keyId: ValueType<number> = {
  placeholder: "ID",
  expected: "the ID of a key, as petstore keys list shows it",
  parse: (text) => (KEY_ID.test(text) && Number.isSafeInteger(Number(text)) ? Number(text) : undefined),
  format: String,
};

/** Options of the commands that create and change keys. */
export const KEY_OPTIONS = {
  name: { type: text("NAME", KEY_NAME), help: "Purpose of the key, shown in lists" },
  plan: { type: choice("PLAN", PLANS), help: "Plan of the key" },
  "per-minute": {
    type: requestCount,
    help: "Requests per minute; only for the Enterprise plan, where it is required",
  },
  "per-day": {
    type: requestCount,
    help: "Requests per day; only for the Enterprise plan, where it is required",
  },
  owner: { type: text("OWNER", KEY_OWNER), help: "Owner of the key: an email address or a reference" },
  notes: { type: text("TEXT", KEY_NOTES), help: "Notes about the key" },
  label: {
    type: list(text("LABEL", KEY_LABEL)),
    repeatable: true,
    help: "Labels of the key, at most 20; can be repeated",
  },
  access: {
    type: choice("ACCESS", ACCESS_LEVELS),
    defaultText: "write",
    help: "What the key may do; a read-only key gets 403 for everything but GET, HEAD and OPTIONS",
  },
  expires: {
    type: durationOr("never", { min: SECOND, max: 3_650 * DAY }),
    defaultText: "never",
    help: "Time from now until the key expires",
  },
  clear: {
    type: list(choice("FIELD", ["owner", "notes", "labels"])),
    repeatable: true,
    help: "Fields to remove from the key",
  },
  overlap: {
    type: duration({ min: 0, max: MAX_OVERLAP_MS }),
    default: DAY,
    help: "Time for which the previous secrets stay valid",
  },
  json: { type: boolean, default: false, help: "Print JSON" },
} as const satisfies Options;

/** Further options of `petstore keys list`. */
export const KEY_FILTER_OPTIONS = {
  state: { type: choice("STATE", KEY_STATES), help: "Only keys in this state" },
  banned: { type: boolean, default: false, help: "Only keys that are banned, as with --state banned" },
  "unused-since": {
    type: pointInTime,
    help: "Only keys without a request since then; a key that was never used counts from its creation",
  },
  search: {
    type: text("TEXT", lineOf(200)),
    help: "Only keys with this in their name, owner, labels or the visible part of a secret, or with this ID",
  },
} as const satisfies Options;
