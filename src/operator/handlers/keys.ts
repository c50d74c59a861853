import { cursorAfter } from "../../api/cursor.ts";
import { isRejection, rejection, type Rejection } from "../../api/errors.ts";
import { formatOptionalTime, formatTime } from "../../api/formatting.ts";
import type { Identifier } from "../../api/json.ts";
import {
  type ApiKey,
  type Environment,
  ENVIRONMENTS,
  generateSecret,
  hashSecret,
  isWellFormedSecret,
  type KeyChange,
  toNewSecret,
} from "../../domain/api-keys.ts";
import type { Actor, Attribution } from "../../domain/audit.ts";
import type { KeyList } from "../../domain/key-list.ts";
import { invalidKeyField, LIMITS_REQUIRED } from "../../domain/key-fields.ts";
import { canUnban } from "../../domain/rate-limit.ts";
import type { AdminContext, AdminHandlers } from "../admin-app.ts";
import { keyNotFound, nothingToChange } from "../errors.ts";
import { DEFAULT_OVERLAP_SECONDS } from "../key-resources.ts";
import { ADMIN_PAGE_LIMIT, type Key, type KeyRotation } from "../operations.ts";
import type { OperatorServices } from "./services.ts";
import type { KeyDirectory } from "./key-directory.ts";

const UPDATABLE = ["name", "owner", "notes", "labels", "plan", "limits", "access", "expiresAt"];
/** A change of these needs a key that works; the other fields only describe the key. */
const ACTIVE_FIELDS = ["plan", "limits", "access", "expiresAt"] as const;

type Inactive = Rejection<"key_not_found" | "key_not_active">;

export function keyHandlers(services: OperatorServices, directory: KeyDirectory) {
  const { keys, clock, environment, rateLimiter, applyKeyChanges } = services;
  const by = (actor: Actor): Attribution => ({ actor, at: clock.now() });

  return {
    async listKeys({ query }) {
      const { sort, order, limit = ADMIN_PAGE_LIMIT.default, cursor, ...filter } = query;
      const list = await directory.list({
        filter: {
          ...filter,
          unusedSince: timeOf(filter.unusedSince),
          deprecatedSince: timeOf(filter.deprecatedSince),
        },
        sort: sort ?? "id",
        isDescending: order === "desc",
        after: cursor === undefined ? undefined : Number(cursor),
        limit,
      });
      return pageOf(list);
    },

    async listBans({ query: { limit = ADMIN_PAGE_LIMIT.default } }) {
      return pageOf({ ...(await directory.banned(limit)), hasMore: false });
    },

    async createKey({ body: { limits, owner, notes, expiresAt, ...required } }, { actor }) {
      const attribution = by(actor);
      const key = {
        ...required,
        createdAt: attribution.at,
        ...(limits && { limits }),
        ...(owner && { owner }),
        ...(notes && { notes }),
        ...(expiresAt && { expiresAt: Date.parse(expiresAt) }),
      };
      const invalid = invalidKeyField(key, { now: attribution.at });
      if (invalid) return invalid;
      const secret = generateSecret(environment);
      const created = await keys.createKey(key, toNewSecret(secret), attribution);
      return { key: await directory.view(created), secret };
    },

    /** Also if the secret or the key no longer works. */
    async findKey({ body: { secret } }) {
      const home = ENVIRONMENTS.find((each) => isWellFormedSecret(secret, each));
      const found = home === environment ? await keys.findCredential(hashSecret(secret)) : undefined;
      if (found === undefined) return unknownSecret(home, environment);
      const view = await directory.view(found.key);
      return { ...view, secretValidUntil: formatOptionalTime(found.validUntil) };
    },

    async getKey({ id }) {
      const key = await find(id);
      return isRejection(key) ? key : directory.view(key);
    },

    /** A revoked key keeps its plan, access and expiry; an expired key too, unless the change moves the expiry. */
    async updateKey({ id, body }, { actor }) {
      if (Object.keys(body).length === 0) return nothingToChange(UPDATABLE);
      const attribution = by(actor);
      const key = await find(id);
      if (isRejection(key)) return key;
      const { limits, expiresAt, ...rest } = body;
      // Limits of null are those of the plan.
      if (limits === null && (rest.plan ?? key.plan) === "enterprise") return LIMITS_REQUIRED;
      const change: KeyChange = {
        ...rest,
        ...(limits && { limits }),
        ...(expiresAt !== undefined && { expiresAt: expiresAt === null ? null : Date.parse(expiresAt) }),
      };
      const invalid = invalidKeyField(change, { now: attribution.at, key });
      if (invalid) return invalid;
      if (ACTIVE_FIELDS.some((field) => change[field] !== undefined)) {
        const inactive = notActive({ ...key, ...expiryOf(change) }, attribution.at, "changed");
        if (inactive) return inactive;
      }
      return applied(await keys.updateKey(key.id, change, attribution));
    },

    rotateKey: rotate,
    rollKey: rotate,

    /** A key that is already revoked stays as it is. */
    async revokeKey({ id }, { actor }) {
      const attribution = by(actor);
      const key = await find(id);
      if (isRejection(key)) return key;
      if (key.revokedAt !== undefined) return applied(key);
      return applied(await keys.updateKey(key.id, { revokedAt: attribution.at }, attribution));
    },

    disableKey: ({ id }, { actor }) => setDisabled(id, actor, true),
    enableKey: ({ id }, { actor }) => setDisabled(id, actor, false),

    async unbanKey({ id }, { actor }) {
      const attribution = by(actor);
      const key = await findActive(id, attribution.at, "unbanned");
      if (isRejection(key)) return key;
      const usage = await rateLimiter.usage({ kind: "key", id: key.id });
      // Without a ban nothing changes, and the audit trail gets no entry.
      if (services.hasAllUsage && services.canReadUsage() && !(usage && canUnban(usage)))
        return directory.view(key);
      const unbanned = await keys.updateKey(key.id, { unbannedAt: attribution.at }, attribution);
      await rateLimiter.unban({ kind: "key", id: key.id }, 0);
      return directory.view(unbanned);
    },
  } satisfies Partial<AdminHandlers>;

  /** A key that is disabled, or enabled, already stays as it is. */
  async function setDisabled(id: Identifier, actor: Actor, isDisabled: boolean): Promise<Key | Inactive> {
    const attribution = by(actor);
    const key = await findActive(id, attribution.at, isDisabled ? "disabled" : "enabled");
    if (isRejection(key)) return key;
    if ((key.disabledAt !== undefined) === isDisabled) return applied(key);
    const disabledAt = isDisabled ? attribution.at : null;
    return applied(await keys.updateKey(key.id, { disabledAt }, attribution));
  }

  async function rotate(
    { id, body: { overlapSeconds = DEFAULT_OVERLAP_SECONDS } }: { id: Identifier; body: KeyRotation },
    { actor }: AdminContext,
  ) {
    const attribution = by(actor);
    const key = await findActive(id, attribution.at, "rotated");
    if (isRejection(key)) return key;
    const secret = generateSecret(environment);
    const endsAt = attribution.at + overlapSeconds * 1_000;
    // 0 is in the past on every machine, also where the clock is behind.
    const overlapEndsAt = overlapSeconds === 0 ? 0 : endsAt;
    await keys.addSecret(key.id, { ...toNewSecret(secret), overlapEndsAt }, attribution);
    return { key: await applied(key), secret, overlapEndsAt: formatTime(endsAt) };
  }

  /** No key has an identifier that a double cannot represent. */
  async function find(id: Identifier): Promise<ApiKey | Rejection<"key_not_found">> {
    const key = Number.isSafeInteger(Number(id)) ? await keys.getKey(Number(id)) : undefined;
    return key ?? keyNotFound(id);
  }

  async function findActive(id: Identifier, now: number, change: string): Promise<ApiKey | Inactive> {
    const key = await find(id);
    return isRejection(key) ? key : (notActive(key, now, change) ?? key);
  }

  async function applied(key: ApiKey): Promise<Key> {
    await applyKeyChanges();
    return directory.view(key);
  }
}

function timeOf(text: string | undefined): number | undefined {
  return text === undefined ? undefined : Date.parse(text);
}

function pageOf(list: KeyList<Key>) {
  return { items: list.items, total: list.total, nextCursor: cursorAfter("keys", list) };
}

function unknownSecret(home: Environment | undefined, here: Environment): Rejection<"key_not_found"> {
  if (home === undefined)
    return rejection("key_not_found", "This is not an API key; it is mistyped or incomplete.");
  if (home !== here) return rejection("key_not_found", `This is an API key of ${home}.`);
  return rejection("key_not_found", `No key in ${here} has this secret.`);
}

function expiryOf({ expiresAt }: KeyChange): { expiresAt?: number | undefined } {
  return expiresAt === undefined ? {} : { expiresAt: expiresAt ?? undefined };
}

/** `change` completes "the key cannot be …". */
function notActive(
  { id, revokedAt, expiresAt }: Pick<ApiKey, "id" | "revokedAt"> & { expiresAt?: number | undefined },
  now: number,
  change: string,
): Rejection<"key_not_active"> | undefined {
  const rest = `and cannot be ${change}; create a new key.`;
  if (revokedAt !== undefined)
    return rejection("key_not_active", `Key ${id} was revoked at ${formatTime(revokedAt)} ${rest}`);
  if (expiresAt === undefined || now < expiresAt) return undefined;
  return rejection("key_not_active", `Key ${id} expired at ${formatTime(expiresAt)} ${rest}`);
}
