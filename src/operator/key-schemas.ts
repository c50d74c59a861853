import {
  array,
  dateTime,
  type Infer,
  integer,
  line,
  nullable,
  object,
  oneOf,
  updateSchema,
} from "../api/schema.ts";
import { KEY_STATES } from "../domain/api-keys.ts";
import { EXAMPLE_TIME, schemasOf } from "../domain/fields.ts";
import {
  KEY_FIELDS,
  KeyId,
  MAX_OVERLAP_MS,
  REQUEST_LIMITS,
  WRITTEN_KEY_FIELDS,
} from "../domain/key-fields.ts";

export const DEFAULT_OVERLAP_SECONDS = 24 * 60 * 60;

export const count = (description: string) => integer({ min: 0, max: Number.MAX_SAFE_INTEGER, description });
export const time = (description: string) => dateTime({ description, examples: [EXAMPLE_TIME] });

export const nextCursor = nullable(line(40, "`cursor` of the next page"), "Null on the last page");

export const Plan = KEY_FIELDS.plan.schema;
export const AccessSchema = KEY_FIELDS.access.schema;
export const KeyStateSchema = oneOf(KEY_STATES, "State of the API key");

const LimitsSchema = object("Rate limits", REQUEST_LIMITS);

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

const {
  perMinute: _perMinute,
  perDay: _perDay,
  access,
  expiresAt,
  ...written
} = schemasOf(WRITTEN_KEY_FIELDS).required;
const { createdAt, revokedAt } = schemasOf(KEY_FIELDS).required;

const keyFields = {
  id: KeyId,
  ...written,
  limits: LimitsSchema,
  access,
  state: KeyStateSchema,
  secrets: array(SecretInfo, {
    json: "Those that work, newest first: more than one during the overlap of a rotation",
  }),
  usage: nullable(KeyUsage, "Null while it cannot be read"),
  strikes: nullable(count("Strikes towards a ban; null while they cannot be read")),
  bannedUntil: nullable(time("When the ban ends; null if the key is not banned")),
  createdAt,
  expiresAt,
  revokedAt,
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
  {
    hidden: count("Number of revoked keys that match the filters but `revoked`, which excludes them"),
    counts: object("Number of keys in each state that match the filters other than `state` and `revoked`", {
      active: count("Keys that are active"),
      banned: count("Keys that are banned"),
      disabled: count("Keys that are disabled"),
      expired: count("Keys that have expired"),
      revoked: count("Keys that are revoked"),
    }),
  },
);

const ownLimits = nullable(LimitsSchema, "Required for the enterprise plan, and only for it");
const { name, plan, ...optional } = written;

export const NewKeySchema = object(
  "An API key to create. `access` is `write` by default.",
  { name, plan },
  { limits: ownLimits, ...optional, access, expiresAt },
);

export const KeyUpdate = updateSchema("The fields to change, at least one. Null removes a value.", {
  ...written,
  limits: ownLimits,
  access,
  expiresAt: nullable(time("When the key expires; null removes the expiry")),
});

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
