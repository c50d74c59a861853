import { formatOptionalTime, formatTime } from "../api/formatting.ts";
import { encodeOrder, encodePet, type Pet } from "../domain/resources.ts";
import type { OrderWithKey } from "../domain/corrections.ts";
import type { ExportedKey } from "../domain/data-transfer.ts";
import type { UsageRow } from "../domain/usage-history.ts";
import { csvCell, csvRow } from "./csv-encoding.ts";
import { ORDER_FIELDS, PET_FIELDS } from "./row-types.ts";

/** How the items of an export are written, each on one line with its end. */
export interface Encoder<Item> {
  readonly csvHeader: string;
  csv(item: Item): string;
  ndjson(item: Item): string;
}

export const PET_ENCODER: Encoder<Pet> = {
  csvHeader: headerOf(PET_FIELDS),
  csv: ({ id, name, categoryId, status = "" }) => `${id},${csvCell(name)},${categoryId},${status}\n`,
  ndjson: (pet) => `${encodePet(pet)}\n`,
};

export const ORDER_ENCODER: Encoder<OrderWithKey> = {
  csvHeader: headerOf(ORDER_FIELDS),
  csv: ({ id, petId, status, createdAt, keyId }) => `${id},${petId},${status},${createdAt},${keyId ?? ""}\n`,
  ndjson: (order) => `${encodeOrder(order).slice(0, -1)},"keyId":${order.keyId}}\n`,
};

const USAGE_FIELDS = ["keyId", "start", "operation", "admitted", "limited", "banned", "errors"] as const;

export const USAGE_ENCODER: Encoder<UsageRow> = {
  csvHeader: headerOf(USAGE_FIELDS),
  csv: (row) => `${csvRow(USAGE_FIELDS.map((field) => String(usageView(row)[field])))}\n`,
  ndjson: (row) => `${JSON.stringify(usageView(row))}\n`,
};

function usageView({ keyId, start, operation, admitted, limited, banned, errors }: UsageRow) {
  return { keyId, start: formatTime(start), operation, admitted, limited, banned, errors };
}

const KEY_FIELDS = [
  "id",
  "name",
  "owner",
  "notes",
  "labels",
  "plan",
  "perMinute",
  "perDay",
  "access",
  "createdAt",
  "expiresAt",
  "revokedAt",
] as const;

/** Keys with the hashes of their secrets, or without. CSV has lists as JSON. */
export function keyEncoder({ withHashes }: { readonly withHashes: boolean }): Encoder<ExportedKey> {
  const fields = withHashes ? [...KEY_FIELDS, "secrets" as const] : KEY_FIELDS;
  const view = withHashes ? keyWithSecretsView : keyView;
  return {
    csvHeader: headerOf(fields),
    csv: (key) => `${csvRow(Object.values(view(key)).map(cellOf))}\n`,
    ndjson: (key) => `${JSON.stringify(view(key))}\n`,
  };
}

function keyView({ key }: ExportedKey) {
  return {
    id: key.id,
    name: key.name,
    owner: key.owner ?? null,
    notes: key.notes ?? null,
    labels: key.labels,
    plan: key.plan,
    perMinute: key.limits?.perMinute ?? null,
    perDay: key.limits?.perDay ?? null,
    access: key.access,
    createdAt: formatTime(key.createdAt),
    expiresAt: formatOptionalTime(key.expiresAt),
    revokedAt: formatOptionalTime(key.revokedAt),
  } satisfies Record<(typeof KEY_FIELDS)[number], unknown>;
}

function keyWithSecretsView(exported: ExportedKey) {
  const secrets = exported.secrets.map(({ hash, hint = null, createdAt, validUntil }) => ({
    hash,
    hint,
    createdAt: formatOptionalTime(createdAt),
    validUntil: formatOptionalTime(validUntil),
  }));
  return { ...keyView(exported), secrets };
}

function cellOf(value: unknown): string {
  if (value === null) return "";
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

function headerOf(fields: readonly string[]): string {
  return `${fields.join(",")}\n`;
}
