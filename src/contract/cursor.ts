import { crc32 } from "./crc32.ts";
import { parseIdentifier } from "./json.ts";
import { Invalid, type Schema } from "./schema.ts";

/**
 * A cursor says "after this identifier" in base 36, followed by seven characters of checksum over the listing's name
 * and the identifier. The checksum is no secret: it tells a cursor of this listing from anything else, and it is the
 * same on every instance and after every restart.
 */
export type Listing = "pets" | "orders";

const CHECK_LENGTH = 7;
const CURSOR = /^[0-9a-z]{1,13}[0-9a-z]{7}$/;

export function encodeCursor(listing: Listing, after: bigint): string {
  return after.toString(36) + check(listing, after);
}

function check(listing: Listing, after: bigint): string {
  return crc32(`${listing}:${after}`).toString(36).padStart(CHECK_LENGTH, "0");
}

function decodeCursor(listing: Listing, cursor: string): bigint | undefined {
  if (!CURSOR.test(cursor)) return undefined;
  const after = fromBase36(cursor.slice(0, -CHECK_LENGTH));
  const isOurs = encodeCursor(listing, after) === cursor && parseIdentifier(String(after)) !== undefined;
  return isOurs ? after : undefined;
}

/** Ten digits fit into a double; a store with more animals than that takes its time. */
function fromBase36(digits: string): bigint {
  if (digits.length <= 10) return BigInt(Number.parseInt(digits, 36));
  let value = 0n;
  for (const digit of digits) value = value * 36n + BigInt(Number.parseInt(digit, 36));
  return value;
}

export function cursorOf(listing: Listing): Schema<bigint> {
  return {
    expected: 'a cursor taken from a `Link` header with rel="next" of this listing',
    json: { type: "string", description: "Carries on after the last entry of an earlier page; opaque" },
    read(value) {
      const after = typeof value === "string" ? decodeCursor(listing, value) : undefined;
      return after ?? new Invalid([`must be ${this.expected}`]);
    },
  };
}
