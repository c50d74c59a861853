import { type Actor, ACTOR_KINDS, AUDIT_ACTIONS } from "../domain/audit.ts";
import { OPERATION_IDS } from "../domain/usage-history.ts";
import { keyId } from "./key-options.ts";
import type { Options } from "./parse-options.ts";
import { pointInTime } from "./time-types.ts";
import { boolean, choice, integer, type ValueType } from "./value-types.ts";

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

/** Further options of `petstore audit`. */
export const AUDIT_OPTIONS = {
  action: { type: choice("ACTION", AUDIT_ACTIONS), help: "Only this action" },
  actor: { type: actorKind, help: "Only what was done there" },
  key: { type: keyId, help: "Only what concerns this key" },
  ...PERIOD_OPTIONS,
  limit: { type: integer({ min: 1, max: 10_000 }), default: 50, help: "Maximum number of entries" },
} as const satisfies Options;
