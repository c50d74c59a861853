import { crc32 } from "./crc32.ts";
import { isInt64 } from "./json.ts";
import { Invalid, type Schema } from "./schema.ts";

/**
 * A cursor says "after this identifier" in base 36, followed by seven characters of checksum over the listing's name
 * and the identifier. The checksum is no secret: it tells a cursor of this listing from anything else, and it is the
 * same on every instance and after every restart.
 */
export type Listing = "pets" | "orders";

const CHECK_LENGTH = 7;
const CURSOR = /^(?:0|[1-9a-z][0-9a-z]{0,12})[0-9a-z]{7}$/;

export function encodeCursor(listing: Listing, after: bigint): string {
  const number = plain(after);
  return number.toString(36) + check(listing, number).toString(36).padStart(CHECK_LENGTH, "0");
}

function decodeCursor(listing: Listing, cursor: string): bigint | undefined {
  if (!CURSOR.test(cursor)) return undefined;
  const after = fromBase36(cursor.slice(0, -CHECK_LENGTH));
  if (Number.parseInt(cursor.slice(-CHECK_LENGTH), 36) !== check(listing, after)) return undefined;
  const id = BigInt(after);
  return isInt64(id) ? id : undefined;
}

function check(listing: Listing, after: number | bigint): number {
  return crc32(`${listing}:${after}`);
}

/** Ten digits fit into a double; a store with more pets than that takes its time. */
function fromBase36(digits: string): number | bigint {
  if (digits.length <= 10) return Number.parseInt(digits, 36);
  let value = 0n;
  for (const digit of digits) value = value * 36n + BigInt(Number.parseInt(digit, 36));
  return value;
}

/** A number is written out in a fraction of the time of a bigint. */
function plain(id: bigint): number | bigint {
  return id <= Number.MAX_SAFE_INTEGER ? Number(id) : id;
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
