import { cursorAfter } from "../../domain/cursor.ts";
import { Rejection } from "../../api/errors.ts";
import { formatOptionalTime, formatTime, parseOptionalTime } from "../../text/formatting.ts";
import { type Identifier, toSafeNumber } from "../../api/json.ts";
import { type ApiKey, keyNotActive, keyNotFound, type KeyChange } from "../../domain/api-keys.ts";
import { generateSecret, hashSecret, isWellFormedSecret, toNewSecret } from "../../domain/secrets.ts";
import { type Environment, ENVIRONMENTS } from "../../domain/environments.ts";
import type { Attribution } from "../../domain/audit.ts";
import { parseTimes, withoutNulls } from "../../domain/fields.ts";
import { KEY_FIELDS } from "../../domain/key-fields.ts";
import { invalidKeyField, LIMITS_REQUIRED } from "../../domain/key-rules.ts";
import { canUnban } from "../../domain/rate-limit.ts";
import { DEFAULT_OVERLAP_SECONDS } from "../operations/keys.ts";
import { ADMIN_PAGE_LIMIT, type Key } from "../operations.ts";
import { KeyViews, type KeyViewServices } from "./key-views.ts";
import type { AdminHandlers } from "./context.ts";
import type { Services } from "../services.ts";

/** The fields that only a valid key can change. The other fields only describe the key. */
const ACTIVE_FIELDS = ["plan", "limits", "access", "expiresAt"] as const;

type Inactive = Rejection<"key_not_found" | "key_not_active">;

interface KeyServices extends KeyViewServices, Pick<Services, "environment" | "applyChanges"> {}

export function keyHandlers(services: KeyServices) {
  const { environment, keys, rateLimiter, limiterMonitor, applyChanges } = services;
  const views = new KeyViews(services);

  return {
    async listKeys({ query }) {
      const { sort, order, limit = ADMIN_PAGE_LIMIT.default, cursor, revoked, usedPercent, ...given } = query;
      const hidesRevoked = revoked === "exclude" && given.state === undefined;
      const filter = {
        ...given,
        unusedSince: parseOptionalTime(given.unusedSince),
        deprecatedSince: parseOptionalTime(given.deprecatedSince),
        expiresBefore: parseOptionalTime(given.expiresBefore),
      };
      const list = await views.list({
        filter: { ...filter, ...(hidesRevoked && { isRevoked: false }) },
        sort: sort ?? "id",
        isDescending: order === "desc",
        after: cursor === undefined ? undefined : Number(cursor),
        limit,
        usedPercent,
      });
      const { counts, total, items } = list;
      const page = { items, total, counts, nextCursor: cursorAfter("keys", list) };
      return hidesRevoked ? { ...page, hidden: counts.revoked } : page;
    },

    async listBans({ query: { limit = ADMIN_PAGE_LIMIT.default } }) {
      const { items, total } = await views.banned(limit);
      return { items, total, nextCursor: null };
    },

    async createKey({ body }, { by }) {
      const key = withoutNulls({ ...parseTimes(KEY_FIELDS, body), createdAt: by.at });
      const invalid = invalidKeyField(key, { now: by.at });
      if (invalid) return invalid;
      const secret = generateSecret(environment);
      const created = await keys.createKey(key, toNewSecret(secret), by);
      return { key: await views.view(created), secret };
    },

    /** Finds the key of a secret, even if the secret or the key no longer works. */
    async findKey({ body: { secret } }) {
      const home = ENVIRONMENTS.find((each) => isWellFormedSecret(secret, each));
      const found = home === environment ? await keys.findCredential(hashSecret(secret)) : undefined;
      if (found === undefined) return unknownSecret(home, environment);
      const view = await views.view(found.key);
      return { ...view, secretValidUntil: formatOptionalTime(found.validUntil) };
    },

    async getKey({ id }) {
      const key = await find(id);
      return key instanceof Rejection ? key : views.view(key);
    },

    /**
     * Changes a key. A revoked key keeps its plan, access and expiry. An expired key does too, unless the change moves
     * the expiry.
     */
    async updateKey({ id, body }, { by }) {
      const key = await find(id);
      if (key instanceof Rejection) return key;
      const { limits, ...rest } = parseTimes(KEY_FIELDS, body);
      // With limits of null, the limits of the plan apply.
      if (limits === null && (rest.plan ?? key.plan) === "enterprise") return LIMITS_REQUIRED;
      const change: KeyChange = { ...rest, ...(limits && { limits }) };
      const invalid = invalidKeyField(change, { now: by.at, key });
      if (invalid) return invalid;
      if (ACTIVE_FIELDS.some((field) => change[field] !== undefined)) {
        const inactive = keyNotActive({ ...key, ...expiryOf(change) }, by.at, "changed");
        if (inactive) return inactive;
      }
      return applied(await keys.updateKey(key.id, change, by));
    },

    async rotateKey({ id, body: { overlapSeconds = DEFAULT_OVERLAP_SECONDS } }, { by }) {
      const key = await findActive(id, by.at, "rotated");
      if (key instanceof Rejection) return key;
      const secret = generateSecret(environment);
      const endsAt = by.at + overlapSeconds * 1_000;
      // The time 0 is in the past on every machine, even on one whose clock is behind.
      const overlapEndsAt = overlapSeconds === 0 ? 0 : endsAt;
      await keys.addSecret(key.id, { ...toNewSecret(secret), overlapEndsAt }, by);
      return { key: await applied(key), secret, overlapEndsAt: formatTime(endsAt) };
    },

    /**
     * Revokes a key. A revoked key stays as it is but is written again, because what was read may be on one disk only.
     */
    async revokeKey({ id, body }, { by }) {
      const key = await find(id);
      if (key instanceof Rejection) return key;
      return applied(await keys.updateKey(key.id, { revokedAt: by.at }, { ...by, ...body }));
    },

    disableKey: ({ id, body }, { by }) => setState(id, "disabled", { ...by, ...body }),
    enableKey: ({ id }, { by }) => setState(id, "enabled", by),

    /**
     * Calls the rate limiter itself, because `applyChanges` does nothing in a command that works without a server: such
     * a command ends the ban in the stored quota. A server finds the unban again with its next poll, which ends only
     * bans that began before it.
     */
    async unbanKey({ id, body }, { by }) {
      const key = await findActive(id, by.at, "unbanned");
      if (key instanceof Rejection) return key;
      const quota = await rateLimiter.quota({ kind: "key", id: key.id });
      // Without a ban nothing changes, and the audit trail gets no entry.
      if (limiterMonitor.isAvailable && !(quota && canUnban(quota))) return views.view(key);
      const unbanned = await keys.updateKey(key.id, { unbannedAt: by.at }, { ...by, ...body });
      await rateLimiter.unban({ kind: "key", id: key.id }, 0);
      return views.view(unbanned);
    },
  } satisfies Partial<AdminHandlers>;

  async function find(id: Identifier): Promise<ApiKey | Rejection<"key_not_found">> {
    return (await keys.getKey(toSafeNumber(id))) ?? keyNotFound(id);
  }

  async function findActive(id: Identifier, now: number, change: string): Promise<ApiKey | Inactive> {
    const key = await find(id);
    return key instanceof Rejection ? key : (keyNotActive(key, now, change) ?? key);
  }

  /** Disables or enables a key. One with that state stays as it is but is written again, as in `revokeKey`. */
  async function setState(
    id: Identifier,
    state: "disabled" | "enabled",
    by: Attribution,
  ): Promise<Key | Inactive> {
    const key = await findActive(id, by.at, state);
    if (key instanceof Rejection) return key;
    const disabledAt = state === "disabled" ? (key.disabledAt ?? by.at) : null;
    return applied(await keys.updateKey(key.id, { disabledAt }, by));
  }

  async function applied(key: ApiKey): Promise<Key> {
    await applyChanges(key.id);
    return views.view(key);
  }
}

function unknownSecret(home: Environment | undefined, here: Environment): Rejection<"key_not_found"> {
  if (home === undefined)
    return new Rejection("key_not_found", "This is not an API key; it is mistyped or incomplete.");
  if (home !== here) return new Rejection("key_not_found", `This is an API key of ${home}.`);
  return new Rejection("key_not_found", `No key in ${here} has this secret.`);
}

function expiryOf({ expiresAt }: KeyChange): { expiresAt?: number | undefined } {
  return expiresAt === undefined ? {} : { expiresAt: expiresAt ?? undefined };
}
