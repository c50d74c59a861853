import type { ExportedKey, StoredSecret } from "../domain/data-transfer.ts";
import { keyOf, type KeyRow, SECRET_COLUMNS, secretOf, type SecretRow } from "./key-rows.ts";

export type HashedSecretRow = SecretRow & { readonly hash: string };

export const STORED_SECRET_COLUMNS = `hash, ${SECRET_COLUMNS}`;

/** `secrets` are those of the keys, in their order. */
export function exportedKeysOf(
  keys: readonly KeyRow[],
  secrets: readonly HashedSecretRow[],
): readonly ExportedKey[] {
  const byKey = Map.groupBy(secrets, ({ keyId }) => Number(keyId));
  return keys.map((row) => {
    const key = keyOf(row);
    return { key, secrets: (byKey.get(key.id) ?? []).map(storedSecretOf) };
  });
}

function storedSecretOf(row: HashedSecretRow): StoredSecret {
  return { hash: row.hash, ...secretOf(row) };
}
