import { array, dateTime, integer, line, nullable, oneOf, text } from "../api/schema.ts";
import { EXAMPLE_TIME, type Fields, givenFieldsOf, type WorkingObject } from "./fields.ts";
import { DAY_MS } from "../text/time-units.ts";
import { PLANS } from "./plans.ts";

export const KeyId = integer({
  min: 1,
  max: Number.MAX_SAFE_INTEGER,
  description: "Identifier of the API key",
  examples: [7],
});

const ACCESS_LEVELS = ["read", "write"] as const;
export type Access = (typeof ACCESS_LEVELS)[number];

/** The texts that an operator writes about a key. Lengths are in code points. */
export const KEY_NAME = { maxLength: 100 };
export const KEY_OWNER = { maxLength: 200 };
export const KEY_NOTES = { maxLength: 2_000 };
export const KEY_LABEL = { maxLength: 50 };
export const MAX_LABELS = 20;
/** The largest limit. It is far above any real plan, and the sum of two limits is still exact. */
const MAX_REQUEST_LIMIT = 1_000_000_000;

const time = (description: string) => dateTime({ description, examples: [EXAMPLE_TIME] });
const requestLimit = (description: string) => integer({ min: 1, max: MAX_REQUEST_LIMIT, description });

/** The requests that a key or a plan allows. */
export const REQUEST_LIMITS = {
  perMinute: requestLimit("Requests per minute"),
  perDay: requestLimit("Requests per day"),
};

/** The fields of an API key, as operators see them. */
export const KEY_FIELDS = {
  id: { schema: KeyId, storedAs: "integer", setBy: "service" },
  name: {
    schema: line(KEY_NAME.maxLength, { description: "Purpose of the API key", examples: ["mobile app"] }),
    storedAs: "text",
  },
  owner: {
    schema: nullable(
      line(KEY_OWNER.maxLength, {
        description: "Whom the API key belongs to: an email address or a reference",
        examples: ["mobile@example.com"],
      }),
    ),
    storedAs: "text",
    ifMissing: "null",
  },
  notes: {
    schema: nullable(text(KEY_NOTES.maxLength, "Notes of the operators")),
    storedAs: "text",
    ifMissing: "null",
  },
  labels: {
    schema: array(line(KEY_LABEL.maxLength), {
      max: MAX_LABELS,
      areUnique: true,
      json: { description: "Labels, for filters", examples: [["mobile", "eu"]] },
    }),
    storedAs: "json",
  },
  plan: { schema: oneOf(PLANS, "Plan of the API key"), storedAs: "choice" },
  // An object has both as `limits`.
  perMinute: { schema: nullable(REQUEST_LIMITS.perMinute), storedAs: "integer", ifMissing: "null" },
  perDay: { schema: nullable(REQUEST_LIMITS.perDay), storedAs: "integer", ifMissing: "null" },
  access: {
    schema: oneOf(ACCESS_LEVELS, "`read` allows GET, HEAD and OPTIONS; `write` allows every method"),
    storedAs: "choice",
  },
  createdAt: { schema: time("When the key was created"), storedAs: "time", setBy: "service" },
  expiresAt: {
    schema: nullable(time("When the key expires; null for never")),
    storedAs: "time",
    ifMissing: "null",
  },
  revokedAt: {
    schema: nullable(time("When the key was revoked")),
    storedAs: "time",
    ifMissing: "null",
    setBy: "service",
  },
  /** Set while the key is disabled. */
  disabledAt: {
    schema: nullable(time("When the key was disabled")),
    storedAs: "time",
    ifMissing: "null",
    setBy: "service",
  },
} as const satisfies Fields;

/** The fields that an operator sets for a new key and can change. */
export const GIVEN_KEY_FIELDS = givenFieldsOf(KEY_FIELDS);

/** The values of a key by its fields. */
export type StoredKey = WorkingObject<typeof KEY_FIELDS>;

/** The longest time for which the earlier secrets of a rotated key, or tokens of an operator, may work. */
export const MAX_OVERLAP_MS = 30 * DAY_MS;
