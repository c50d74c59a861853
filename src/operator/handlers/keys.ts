import { encodeCursor } from "../../api/cursor.ts";
import type { Rejection } from "../../api/errors.ts";
import { formatOptionalTime, formatTime } from "../../api/formatting.ts";
import type { Identifier } from "../../api/json.ts";
import type { ApiKey, Environment } from "../../domain/api-keys.ts";
import type { Actor } from "../../domain/audit.ts";
import type { KeyFilter } from "../../domain/key-list.ts";
import {
  isKeyFailure,
  type KeyEdit,
  type KeyFailure,
  KeyManagement,
  type KeyManagementOptions,
} from "../../domain/key-management.ts";
import type { KeyView } from "../../domain/key-view.ts";
import type { AdminContext, HandlersOf } from "../admin-api.ts";
import { keyNotFound, nothingToChange, sentence } from "../errors.ts";
import { DEFAULT_OVERLAP_SECONDS } from "../key-resources.ts";
import { ADMIN_PAGE_LIMIT, type KeyRotation, type KeyUpdate, type QueryOf } from "../operations.ts";
import type { KeyDirectory, KeyList } from "./key-directory.ts";

interface KeyHandlerOptions extends Omit<KeyManagementOptions, "actor"> {
  readonly environment: Environment;
  readonly directory: KeyDirectory;
  /** Applies a change on this server, which would see it within a second anyway. */
  readonly applyKeyChanges: () => Promise<void>;
}

type KeyOperation =
  | "listKeys"
  | "createKey"
  | "findKey"
  | "getKey"
  | "updateKey"
  | "rotateKey"
  | "rollKey"
  | "revokeKey"
  | "disableKey"
  | "enableKey"
  | "unbanKey"
  | "listBans";

export function keyHandlers(options: KeyHandlerOptions): HandlersOf<KeyOperation> {
  const { directory, keys, applyKeyChanges } = options;
  const managementBy = (actor: Actor) => new KeyManagement({ ...options, actor });

  return {
    async listKeys({ query }) {
      const { sort = "id", order = "asc", limit = ADMIN_PAGE_LIMIT.default, cursor } = query;
      const list = await directory.list({
        filter: filterOf(query),
        sort,
        isDescending: order === "desc",
        after: cursor === undefined ? undefined : Number(cursor),
        limit,
      });
      return pageOf(list);
    },

    async listBans({ query: { limit = ADMIN_PAGE_LIMIT.default } }) {
      return pageOf({ ...(await directory.banned(limit)), hasMore: false });
    },

    async createKey({ body: { limits, owner, notes, expiresAt, ...draft } }, { actor }) {
      const created = await managementBy(actor).create({
        ...draft,
        ...(limits && { limits }),
        ...(owner && { owner }),
        ...(notes && { notes }),
        ...(expiresAt && { expiresAt: Date.parse(expiresAt) }),
      });
      if (isKeyFailure(created)) return invalidField(created);
      return { key: await directory.view(created.key), secret: created.secret };
    },

    async findKey({ body: { secret } }, { actor }) {
      const found = await managementBy(actor).findBySecret(secret);
      if (isKeyFailure(found)) return sentence("key_not_found", found.message);
      return {
        ...(await directory.view(found.key)),
        secretValidUntil: formatOptionalTime(found.validUntil),
      };
    },

    async getKey({ id }) {
      const key = await find(id);
      return key ? directory.view(key) : keyNotFound(id);
    },

    async updateKey({ id, body }, { actor }) {
      if (Object.keys(body).length === 0) return nothingToChange(UPDATABLE);
      const key = await find(id);
      if (key === undefined) return keyNotFound(id);
      return viewOf(await managementBy(actor).update(key.id, editOf(body)));
    },

    rotateKey: rotate,
    rollKey: rotate,

    async revokeKey({ id }, { actor }) {
      const key = await find(id);
      const revoked = key && (await managementBy(actor).revoke(key.id));
      if (revoked === undefined || isKeyFailure(revoked)) return keyNotFound(id);
      await applyKeyChanges();
      return directory.view(revoked.key);
    },

    disableKey: ({ id }, { actor }) => setDisabled(id, actor, true),
    enableKey: ({ id }, { actor }) => setDisabled(id, actor, false),

    async unbanKey({ id }, { actor }) {
      const key = await find(id);
      if (key === undefined) return keyNotFound(id);
      const unbanned = await managementBy(actor).unban(key.id);
      return isKeyFailure(unbanned) ? notActive(unbanned) : directory.view(unbanned);
    },
  };

  async function setDisabled(id: Identifier, actor: Actor, isDisabled: boolean) {
    const key = await find(id);
    if (key === undefined) return keyNotFound(id);
    const changed = await managementBy(actor).setDisabled(key.id, isDisabled);
    if (isKeyFailure(changed)) return notActive(changed);
    await applyKeyChanges();
    return directory.view(changed);
  }

  async function rotate(
    { id, body: { overlapSeconds = DEFAULT_OVERLAP_SECONDS } }: { id: Identifier; body: KeyRotation },
    { actor }: AdminContext,
  ) {
    const key = await find(id);
    if (key === undefined) return keyNotFound(id);
    const rotated = await managementBy(actor).rotate(key.id, overlapSeconds * 1_000);
    if (isKeyFailure(rotated)) return rejected(rotated);
    await applyKeyChanges();
    const { secret, overlapEndsAt } = rotated;
    return { key: await directory.view(rotated.key), secret, overlapEndsAt: formatTime(overlapEndsAt) };
  }

  /** No key has an identifier that a double cannot represent. */
  async function find(id: Identifier): Promise<ApiKey | undefined> {
    return Number.isSafeInteger(Number(id)) ? keys.getKey(Number(id)) : undefined;
  }

  async function viewOf(result: ApiKey | KeyFailure): Promise<KeyView | ChangeRejection> {
    if (isKeyFailure(result)) return rejected(result);
    await applyKeyChanges();
    return directory.view(result);
  }
}

function filterOf(query: QueryOf<"listKeys">): KeyFilter {
  const { plan, state, access, owner, label, unusedSince, deprecatedSince, search } = query;
  return {
    plan,
    state,
    access,
    owner,
    label,
    unusedSince: unusedSince === undefined ? undefined : Date.parse(unusedSince),
    deprecatedSince: deprecatedSince === undefined ? undefined : Date.parse(deprecatedSince),
    search,
  };
}

function pageOf({ items, total, hasMore }: KeyList) {
  const last = items.at(-1);
  return { items, total, nextCursor: hasMore && last ? encodeCursor("keys", BigInt(last.id)) : null };
}

const UPDATABLE = ["name", "owner", "notes", "labels", "plan", "limits", "access", "expiresAt"];

/** Limits of null are those of the plan. */
function editOf({ limits, expiresAt, ...edit }: KeyUpdate): KeyEdit {
  return {
    ...edit,
    ...(limits && { limits }),
    ...(expiresAt !== undefined && { expiresAt: expiresAt === null ? null : Date.parse(expiresAt) }),
  };
}

type ChangeRejection = Rejection<"invalid_body" | "key_not_found" | "key_not_active">;

function rejected(failure: KeyFailure): ChangeRejection {
  if (failure.code === "invalid_field") return invalidField(failure);
  if (failure.code === "key_revoked" || failure.code === "key_expired") {
    return sentence("key_not_active", failure.message);
  }
  return sentence("key_not_found", failure.message);
}

function notActive({ code, message }: KeyFailure): Rejection<"key_not_found" | "key_not_active"> {
  return sentence(code === "key_not_found" ? code : "key_not_active", message);
}

/** The message begins with the name of the field. */
function invalidField({ message }: KeyFailure): Rejection<"invalid_body"> {
  return { code: "invalid_body", message: `${message}.` };
}
