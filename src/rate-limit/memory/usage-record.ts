import type { Usage } from "../../domain/rate-limit.ts";
import { setBan, storedBanTime, storedBanUntilOrLength } from "../../domain/stored-ban.ts";

/**
 * A usage and its flags in 64 bytes, one cache line: with many subjects, fetching a line from memory takes longer than
 * all of the arithmetic.
 *
 *      0  minute: openedAt, firstRejectedAt; day: openedAt, firstRejectedAt; the two numbers of a ban   (f64)
 *     48  used in the minute, used in the day   (u32: a limit is at most 1,000,000,000)
 *     56  strikes of the minute   (u24: a ban takes at most 1,000,000 strikes)
 *     59  flags   (u8)
 *     60  strikes of the day   (u32)
 */
export const USAGE_BYTES = 64;
const MINUTE_USED = 48;
const DAY_USED = 52;
const MINUTE_STRIKES = 56;
const FLAGS = 59;
const DAY_STRIKES = 60;

export function readUsage(page: DataView, at: number, into: Usage): void {
  const { minute, day } = into;
  minute.openedAt = page.getFloat64(at, true);
  minute.firstRejectedAt = page.getFloat64(at + 8, true);
  day.openedAt = page.getFloat64(at + 16, true);
  day.firstRejectedAt = page.getFloat64(at + 24, true);
  setBan(into, page.getFloat64(at + 32, true), page.getFloat64(at + 40, true));
  minute.used = page.getUint32(at + MINUTE_USED, true);
  day.used = page.getUint32(at + DAY_USED, true);
  minute.strikes = page.getUint16(at + MINUTE_STRIKES, true) | (page.getUint8(at + MINUTE_STRIKES + 2) << 16);
  day.strikes = page.getUint32(at + DAY_STRIKES, true);
}

export function writeUsage(page: DataView, at: number, usage: Usage): void {
  const { minute, day } = usage;
  page.setFloat64(at, minute.openedAt, true);
  page.setFloat64(at + 8, minute.firstRejectedAt, true);
  page.setFloat64(at + 16, day.openedAt, true);
  page.setFloat64(at + 24, day.firstRejectedAt, true);
  page.setFloat64(at + 32, storedBanTime(usage), true);
  page.setFloat64(at + 40, storedBanUntilOrLength(usage), true);
  page.setUint32(at + MINUTE_USED, minute.used, true);
  page.setUint32(at + DAY_USED, day.used, true);
  page.setUint16(at + MINUTE_STRIKES, minute.strikes, true);
  page.setUint8(at + MINUTE_STRIKES + 2, minute.strikes >>> 16);
  page.setUint32(at + DAY_STRIKES, day.strikes, true);
}

export function readFlags(page: DataView, at: number): number {
  return page.getUint8(at + FLAGS);
}

export function writeFlags(page: DataView, at: number, flags: number): void {
  page.setUint8(at + FLAGS, flags);
}
