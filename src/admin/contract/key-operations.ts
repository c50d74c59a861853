import { dateTime, line, oneOf, queryInteger } from "../../contract/schema.ts";
import { KEY_LABEL, KEY_OWNER } from "../../domain/key-fields.ts";
import { type AdminOperation, BODY_ERRORS, cursor, limit, ok, since, until } from "./operation.ts";
import {
  Action,
  ActorKind,
  AuditPage,
  Interval,
  KeyUsageHistory,
  target,
  UsageTotals,
} from "./history-resources.ts";
import {
  Access,
  CreatedKey,
  Key,
  KeyPage,
  KeyRoll,
  KeySearch,
  KeyState,
  KeyUpdate,
  NewKey,
  Plan,
  RolledKey,
} from "./key-resources.ts";

const KEY_ID = {
  name: "keyId",
  notFound: "key_not_found",
  description: "Identifier of the API key",
} as const;

const KEY_SORTS = ["id", "name", "plan", "createdAt", "lastUsedAt", "usedToday"] as const;

/** API keys, their usage and the audit trail. */
export const KEY_OPERATIONS = {
  listKeys: {
    method: "GET",
    path: "/keys",
    tag: "Keys",
    summary: "List API keys",
    description:
      "Lists the keys that match every filter. Keys that were never used come last when they are sorted by `lastUsedAt`.",
    query: {
      search: line(200, {
        description:
          "Text in the name, the owner, a label or the hint of a secret, in any case; or the identifier",
      }),
      plan: Plan,
      state: KeyState,
      access: Access,
      label: line(KEY_LABEL.maxLength, { description: "A label of the key" }),
      owner: line(KEY_OWNER.maxLength, { description: "The owner of the key" }),
      unusedSince: dateTime({
        description: "Only keys that were not used since; a key without any use counts from its creation",
      }),
      deprecatedSince: dateTime({ description: "Only keys that called a deprecated operation since" }),
      sort: oneOf(KEY_SORTS, { default: "id", description: "What to sort by" }),
      order: oneOf(["asc", "desc"], { default: "asc", description: "Ascending or descending" }),
      limit,
      cursor: cursor("keys"),
    },
    success: ok("A page of keys", KeyPage),
    errors: ["invalid_parameter"],
  },
  createKey: {
    method: "POST",
    path: "/keys",
    tag: "Keys",
    summary: "Create an API key",
    description: "Creates a key and responds with its secret, which is shown only this once.",
    body: NewKey,
    success: { status: 201, description: "The new key and its secret", body: CreatedKey },
    errors: BODY_ERRORS,
  },
  findKey: {
    method: "POST",
    path: "/keys/find",
    tag: "Keys",
    summary: "Find the API key of a secret",
    description: "Finds the key, also if it is revoked or expired, or if the secret was replaced.",
    body: KeySearch,
    success: ok("The key", Key),
    errors: [...BODY_ERRORS, "key_not_found"],
  },
  getKey: {
    method: "GET",
    path: "/keys/{keyId}",
    tag: "Keys",
    summary: "Fetch one API key",
    description: "Responds with the key, its usage and its ban.",
    identifier: KEY_ID,
    success: ok("The key", Key),
    errors: ["key_not_found"],
  },
  updateKey: {
    method: "PATCH",
    path: "/keys/{keyId}",
    tag: "Keys",
    summary: "Change an API key",
    description:
      "Changes the given fields. Servers apply the change within a second. Usage stays: a new plan does not reset it. The plan, limits, access and expiry of a revoked key cannot be changed.",
    identifier: KEY_ID,
    body: KeyUpdate,
    success: ok("The changed key", Key),
    errors: [...BODY_ERRORS, "key_not_found", "key_not_active"],
  },
  rollKey: {
    method: "POST",
    path: "/keys/{keyId}/roll",
    tag: "Keys",
    summary: "Replace the secret of an API key",
    description: "Responds with a new secret. The earlier ones work until the overlap ends.",
    identifier: KEY_ID,
    body: KeyRoll,
    success: ok("The key and its new secret", RolledKey),
    errors: [...BODY_ERRORS, "key_not_found", "key_not_active"],
  },
  revokeKey: {
    method: "POST",
    path: "/keys/{keyId}/revoke",
    tag: "Keys",
    summary: "Revoke an API key",
    description:
      "Ends the key for good: requests with it are 401 at once on this server, and within a second on every other. A key that is already revoked stays as it is.",
    identifier: KEY_ID,
    success: ok("The revoked key", Key),
    errors: ["key_not_found"],
  },
  unbanKey: {
    method: "POST",
    path: "/keys/{keyId}/unban",
    tag: "Keys",
    summary: "End the ban of an API key",
    description: "Ends the ban and clears the strikes. Servers apply it within a second.",
    identifier: KEY_ID,
    success: ok("The key", Key),
    errors: ["key_not_found", "key_not_active"],
  },
  listBans: {
    method: "GET",
    path: "/bans",
    tag: "Keys",
    summary: "List the API keys that are banned now",
    description: "Lists them in the order in which their bans end.",
    query: { limit },
    success: ok("The banned keys", KeyPage),
    errors: ["invalid_parameter"],
  },
  getKeyUsage: {
    method: "GET",
    path: "/keys/{keyId}/usage",
    tag: "Usage",
    summary: "Show the requests of an API key over time",
    description:
      "Hours are kept for 35 days, days for 400 days. By default the last 24 hours by hour, or the last 30 days by day. Counts are at most 5 seconds old.",
    identifier: KEY_ID,
    query: { by: Interval, since, until },
    success: ok("Requests by interval and operation", KeyUsageHistory),
    errors: ["invalid_parameter", "key_not_found"],
  },
  getUsage: {
    method: "GET",
    path: "/usage",
    tag: "Usage",
    summary: "Show the requests of all API keys",
    description: "Adds up the requests of each key in a period: by default the last 30 days.",
    query: { by: Interval, since, until, limit: queryInteger({ min: 1, max: 10_000, default: 100 }) },
    success: ok("Requests by key, most used first", UsageTotals),
    errors: ["invalid_parameter"],
  },
  listAudit: {
    method: "GET",
    path: "/audit",
    tag: "Audit",
    summary: "List changes",
    description: "Lists who changed what, newest first.",
    query: { action: Action, actor: ActorKind, target, since, until, limit, cursor: cursor("audit") },
    success: ok("A page of the audit trail", AuditPage),
    errors: ["invalid_parameter"],
  },
} as const satisfies Record<string, AdminOperation>;
