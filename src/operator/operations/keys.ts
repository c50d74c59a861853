import {
  array,
  dateTime,
  type Infer,
  integer,
  line,
  nullable,
  object,
  oneOf,
  queryInteger,
  updateSchema,
} from "../../api/schema.ts";
import { KEY_STATES } from "../../domain/api-keys.ts";
import { schemasOf } from "../../domain/fields.ts";
import {
  KEY_FIELDS,
  KEY_LABEL,
  KEY_OWNER,
  KeyId,
  MAX_OVERLAP_MS,
  REQUEST_LIMITS,
  GIVEN_KEY_FIELDS,
} from "../../domain/key-fields.ts";
import { KEY_SORTS } from "../../domain/key-lists.ts";
import { count, created, cursor, limit, nextCursor, ok, Reasoned, tagged, time } from "./rows.ts";

export const DEFAULT_OVERLAP_SECONDS = 24 * 60 * 60;

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
} = schemasOf(GIVEN_KEY_FIELDS).required;
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
  "How to rotate the secret of an API key",
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

/** The operations on API keys. */
export const KEY_OPERATIONS = tagged("Keys", {
  listKeys: {
    method: "GET",
    path: "/keys",
    cost: 5,
    summary: "List API keys",
    description:
      "Lists the keys that match every filter, revoked ones last. Keys that were never used come first in ascending order of `lastUsedAt`.",
    query: {
      search: line(
        200,
        "Text in the name, the owner, a label or the hint of a secret, in any case; or the identifier",
      ),
      plan: Plan,
      state: KeyStateSchema,
      access: AccessSchema,
      label: line(KEY_LABEL.maxLength, "A label of the key"),
      owner: line(KEY_OWNER.maxLength, "The owner of the key"),
      unusedSince: dateTime(
        "Only keys that were not used since; a key without any use counts from its creation",
      ),
      deprecatedSince: dateTime("Only keys that called a deprecated operation since"),
      expiresBefore: dateTime("Only keys that are valid and expire before this time"),
      usedPercent: queryInteger({
        min: 1,
        max: 100,
        description: "Only keys that have used at least this percentage of a window",
      }),
      revoked: oneOf(["include", "exclude"], {
        default: "include",
        description: "`exclude`: revoked keys are counted as `hidden`, unless `state` asks for them",
      }),
      sort: oneOf(KEY_SORTS, { default: "id", description: "What to sort by" }),
      order: oneOf(["asc", "desc"], { default: "asc", description: "Ascending or descending" }),
      limit,
      cursor: cursor("keys"),
    },
    maxRowsRead: Infinity,
    success: ok("A page of keys", KeyPage),
  },
  createKey: {
    method: "POST",
    path: "/keys",
    audited: "key.created",
    summary: "Create an API key",
    description: "Creates a key and responds with its secret, which is shown only this once.",
    body: NewKeySchema,
    success: created("The new key and its secret", CreatedKey),
  },
  findKey: {
    method: "POST",
    path: "/keys/find",
    audited: "nothing",
    summary: "Find the API key that has a given secret",
    description: "Finds the key, also if it is revoked or expired, or if the secret is an earlier one.",
    body: KeySearch,
    success: ok("The key", FoundKey),
    errors: ["key_not_found"],
    role: "viewer",
  },
  getKey: {
    method: "GET",
    path: "/keys/{keyId}",
    summary: "Show one API key",
    description: "Responds with the key, its used quotas and its ban.",
    success: ok("The key", Key),
  },
  updateKey: {
    method: "PATCH",
    path: "/keys/{keyId}",
    audited: "key.updated",
    summary: "Change an API key",
    description:
      "Changes the given fields. Servers apply the change within a second. Used quotas stay: a new plan does not reset them. The plan, limits, access and expiry of a revoked key cannot be changed.",
    body: KeyUpdate,
    success: ok("The changed key", Key),
    errors: ["key_not_active"],
  },
  rotateKey: {
    method: "POST",
    path: "/keys/{keyId}/rotate",
    audited: "key.rolled",
    summary: "Rotate the secret of an API key",
    description: "Responds with a new secret. The earlier ones work until the overlap ends.",
    body: KeyRotation,
    success: ok("The key and its new secret", RotatedKey),
    errors: ["key_not_active"],
    role: "support",
  },
  disableKey: {
    method: "POST",
    path: "/keys/{keyId}/disable",
    audited: "key.disabled",
    summary: "Switch an API key off until it is enabled again",
    description: "Servers respond 401 to the key within a second. Its secrets, plan and used quotas stay.",
    body: Reasoned,
    success: ok("The disabled key", Key),
    errors: ["key_not_active"],
    role: "support",
  },
  enableKey: {
    method: "POST",
    path: "/keys/{keyId}/enable",
    audited: "key.enabled",
    summary: "Switch a disabled API key on again",
    description: "Servers accept the key within a second. A key that is enabled stays as it is.",
    success: ok("The enabled key", Key),
    errors: ["key_not_active"],
    role: "support",
  },
  revokeKey: {
    method: "POST",
    path: "/keys/{keyId}/revoke",
    audited: "key.revoked",
    summary: "Revoke an API key for good",
    description:
      "Servers respond 401 to the key within a second. This cannot be undone. A key that is already revoked stays as it is.",
    body: Reasoned,
    success: ok("The revoked key", Key),
  },
  unbanKey: {
    method: "POST",
    path: "/keys/{keyId}/unban",
    audited: "key.unbanned",
    summary: "Unban an API key",
    description:
      "Ends the ban and clears the strikes: the next ban is a first one again. Servers apply it within a second. Used quotas stay, so the key may still be at its limit.",
    body: Reasoned,
    success: ok("The key", Key),
    errors: ["key_not_active"],
    role: "support",
  },
  listBans: {
    method: "GET",
    path: "/bans",
    cost: 2,
    summary: "List the API keys that are banned now",
    description: "Lists them in the order in which their bans end.",
    query: { limit },
    maxRowsRead: Infinity,
    success: ok("The banned keys", KeyPage),
  },
});
