import { array, dateTime, type Infer, integer, line, nullable, object, oneOf, text } from "../api/schema.ts";
import { ACCESS_LEVELS, KEY_STATES, PLANS } from "../domain/api-keys.ts";
import {
  KEY_LABEL,
  KEY_NAME,
  KEY_NOTES,
  KEY_OWNER,
  MAX_LABELS,
  MAX_OVERLAP_MS,
} from "../domain/key-fields.ts";
import { EXAMPLE_TIME, KeyId } from "../domain/resources.ts";

export const DEFAULT_OVERLAP_SECONDS = 24 * 60 * 60;
/** The largest limit, the same as on the command line. */
const MAX_REQUEST_LIMIT = 1_000_000_000;

export const count = (description: string) => integer({ min: 0, max: Number.MAX_SAFE_INTEGER, description });
export const time = (description: string) => dateTime({ description, examples: [EXAMPLE_TIME] });

export const nextCursor = nullable(line(40, "`cursor` of the next page"), "Null on the last page");

export const Plan = oneOf(PLANS, "Plan of the API key");
export const AccessSchema = oneOf(
  ACCESS_LEVELS,
  "`read`: only GET and HEAD are allowed. `write`: every method is.",
);
export const KeyStateSchema = oneOf(KEY_STATES, "State of the API key");

const requestLimit = (description: string) => integer({ min: 1, max: MAX_REQUEST_LIMIT, description });

export const requestLimits = {
  perMinute: requestLimit("Requests per minute"),
  perDay: requestLimit("Requests per day"),
};
const LimitsSchema = object("Rate limits", requestLimits);

const Window = object("A rate limit window", {
  used: count("Requests that were counted in the window"),
  limit: count("Requests that the window allows"),
  resetsAt: nullable(time("When the window closes; null if it is not open")),
});

/** The usage of a key, here and in the list of keys with the most requests. */
export const KeyUsage = object("The current windows of an API key, over all servers", {
  minute: Window,
  day: Window,
});

const SecretInfo = object("A secret that works", {
  hint: nullable(
    line(40, {
      description: "Beginning and end of the secret; null for a secret of an earlier release",
      examples: ["pet_live_aB3d…x9Kq"],
    }),
  ),
  createdAt: nullable(time("When the secret was made; null for a secret of an earlier release")),
  validUntil: nullable(
    time("When the secret stops working because the key was rotated; null for the newest"),
  ),
});

const name = line(KEY_NAME.maxLength, { description: "Purpose of the API key", examples: ["mobile app"] });
const owner = line(KEY_OWNER.maxLength, {
  description: "Whom the API key belongs to: an email address or a reference",
  examples: ["mobile@example.com"],
});
const notes = text(KEY_NOTES.maxLength, "Notes of the operators");
const labels = array(line(KEY_LABEL.maxLength), {
  max: MAX_LABELS,
  areUnique: true,
  json: { description: "Labels, for filters", examples: [["mobile", "eu"]] },
});

const keyFields = {
  id: KeyId,
  name,
  owner: nullable(owner),
  notes: nullable(notes),
  labels,
  plan: Plan,
  limits: LimitsSchema,
  access: AccessSchema,
  state: KeyStateSchema,
  secrets: array(SecretInfo, {
    json: "Those that work, newest first: more than one during the overlap of a rotation",
  }),
  usage: nullable(KeyUsage, "Null while it cannot be read"),
  strikes: nullable(count("Strikes towards a ban; null while they cannot be read")),
  bannedUntil: nullable(time("When the ban ends; null if the key is not banned")),
  createdAt: time("When the key was created"),
  expiresAt: nullable(time("When the key expires; null for never")),
  revokedAt: nullable(time("When the key was revoked")),
  lastUsedAt: nullable(time("When the key was last used")),
};

/** An API key as operators see it: everything except its secrets. */
export const Key = object("An API key", keyFields);
export type Key = Infer<typeof Key>;

export const FoundKey = object("The API key of a secret", {
  ...keyFields,
  secretValidUntil: nullable(time("When the given secret stops or stopped working; null for the newest")),
});

export const KeyPage = object(
  "A page of API keys",
  { items: array(Key), total: count("Number of keys that match the filters"), nextCursor },
  { hidden: count("Number of revoked keys that match the filters but `revoked`, which excludes them") },
);

export const NewKeySchema = object(
  "An API key to create. `access` is `write` by default. Unknown fields are ignored.",
  { name, plan: Plan },
  {
    limits: nullable(LimitsSchema, "Required for the enterprise plan, and only for it"),
    owner: nullable(owner),
    notes: nullable(notes),
    labels,
    access: AccessSchema,
    expiresAt: nullable(time("When the key expires; null for never")),
  },
);

export const KeyUpdate = object(
  { description: "The fields to change, at least one. Null removes a value.", minProperties: 1 },
  {},
  {
    name,
    owner: nullable(owner),
    notes: nullable(notes),
    labels,
    plan: Plan,
    limits: nullable(LimitsSchema, "Required for the enterprise plan, and only for it"),
    access: AccessSchema,
    expiresAt: nullable(time("When the key expires; null removes the expiry")),
  },
);

const secret = line(60, "The secret. It is shown only this once: only its hash is stored.");

export const CreatedKey = object("A new API key with its secret", { key: Key, secret });

export const KeyRotation = object(
  "How to replace the secret of an API key",
  {},
  {
    overlapSeconds: integer({
      min: 0,
      max: MAX_OVERLAP_MS / 1_000,
      default: DEFAULT_OVERLAP_SECONDS,
      description: "How long the earlier secrets still work",
    }),
  },
);
export type KeyRotation = Infer<typeof KeyRotation>;

export const RotatedKey = object("An API key with its new secret", {
  key: Key,
  secret,
  overlapEndsAt: time("When the earlier secrets stop working"),
});

export const KeySearch = object("A secret whose key is to be found. It is not stored.", {
  secret: line(200, "The secret of an API key"),
});
