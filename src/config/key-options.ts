import { ACCESS_LEVELS } from "../domain/api-keys.ts";
import { type Actor, ACTOR_KINDS, AUDIT_ACTIONS } from "../domain/audit.ts";
import { KEY_LABEL, KEY_NAME, KEY_NOTES, KEY_OWNER } from "../domain/key-fields.ts";
import { MAX_OVERLAP_MS } from "../domain/key-management.ts";
import { PLANS } from "../domain/plans.ts";
import { OPERATION_IDS } from "../domain/usage-history.ts";
import type { Options } from "./parse-options.ts";
import { orderId, petId } from "./pet-types.ts";
import {
  boolean,
  choice,
  duration,
  durationOr,
  integer,
  list,
  pointInTime,
  requestCount,
  text,
  type ValueType,
} from "./value-types.ts";

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

/** Of the commands that show what happened. */
const PERIOD_OPTIONS = {
  since: { type: pointInTime, help: "Start of the period" },
  until: { type: pointInTime, defaultText: "now", help: "End of the period" },
} as const satisfies Options;

/** Further options of `petstore usage`. */
export const USAGE_OPTIONS = {
  by: {
    type: choice("INTERVAL", ["hour", "day", "key"]),
    defaultText: "day with an ID or --csv, otherwise key",
    help: "What a row adds up: an hour, a day (both UTC), or the whole period",
  },
  operation: {
    type: choice("OPERATION", OPERATION_IDS),
    defaultText: "all",
    help: "Only requests to this operation, such as getPet",
  },
  ...PERIOD_OPTIONS,
  csv: { type: boolean, default: false, help: "Print CSV: one row per key, interval and operation" },
} as const satisfies Options;

/** In one word: `command-line`. */
const wordOf = (kind: Actor["kind"]) => kind.toLowerCase().replaceAll(" ", "-");
const actorKind: ValueType<Actor["kind"]> = {
  ...choice("ACTOR", ACTOR_KINDS.map(wordOf)),
  parse: (text) => ACTOR_KINDS.find((kind) => wordOf(kind) === text),
  format: wordOf,
};

export const MAX_AUDIT_LIMIT = 10_000;

/** Further options of `petstore audit`. */
export const AUDIT_OPTIONS = {
  action: { type: choice("ACTION", AUDIT_ACTIONS), help: "Only this action" },
  actor: { type: actorKind, help: "Only what was done there" },
  key: { type: keyId, help: "Only what concerns this key" },
  pet: { type: petId, help: "Only what concerns this pet" },
  order: { type: orderId, help: "Only what concerns this order" },
  ...PERIOD_OPTIONS,
  limit: { type: integer({ min: 1, max: MAX_AUDIT_LIMIT }), default: 50, help: "Maximum number of entries" },
} as const satisfies Options;
