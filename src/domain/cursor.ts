/*
 * A cursor is the identifier of the last item of a page in base 36, followed by seven characters of CRC-32 over the
 * list's name and that identifier. The checksum is not a secret. It rejects cursors of another list and mistyped ones,
 * and it is the same on every server.
 */

import { crc32 } from "../runtime/hash.ts";
import { isInt64 } from "../api/json.ts";
import { type Schema, valueSchema } from "../api/schema.ts";

export type ListName = "pets" | "orders" | "keys" | "audit" | "requests" | "usage";

const CHECKSUM_LENGTH = 7;
const CURSOR = /^(?:0|[1-9a-z][0-9a-z]{0,12})[0-9a-z]{7}$/;

export function encodeCursor(list: ListName, after: bigint): string {
  return after.toString(36) + checksum(list, after);
}

interface CursorPage {
  readonly items: readonly { readonly id: number | bigint }[];
  readonly hasMore: boolean;
  readonly readTo?: bigint;
}

/** Returns the cursor of the next page, or null on the last one. */
export function cursorAfter(list: ListName, { items, hasMore, readTo }: CursorPage): string | null {
  const last = readTo ?? items.at(-1)?.id;
  return hasMore && last !== undefined ? encodeCursor(list, BigInt(last)) : null;
}

function decodeCursor(list: ListName, cursor: string): bigint | undefined {
  if (!CURSOR.test(cursor)) return undefined;
  const after = parseBase36(cursor.slice(0, -CHECKSUM_LENGTH));
  return cursor.endsWith(checksum(list, after)) && isInt64(after) ? after : undefined;
}

function checksum(list: ListName, after: bigint): string {
  return crc32(`${list}:${after}`).toString(36).padStart(CHECKSUM_LENGTH, "0");
}

/** Parses up to 13 digits, in two parts that a double represents exactly. */
function parseBase36(digits: string): bigint {
  const high = digits.slice(0, -7);
  const low = BigInt(Number.parseInt(digits.slice(-7), 36));
  return high === "" ? low : BigInt(Number.parseInt(high, 36)) * 36n ** 7n + low;
}

export function cursorSchema(
  list: ListName,
  expected = 'a cursor from the rel="next" link of this list',
): Schema<bigint> {
  const json = {
    type: "string",
    description: "The position after the last item of the previous page; opaque",
  };
  return valueSchema({ kind: "other", expected, json }, (value) =>
    typeof value === "string" ? decodeCursor(list, value) : undefined,
  );
}
