import type { Usage } from "../../domain/rate-limit.ts";
import { Pages } from "./pages.ts";

/**
 * A usage and its flags are one cache line, since with many subjects each line fetched from memory costs more
 * than all of the arithmetic.
 *
 *      0  minute: openedAt, refusedAt; day: openedAt, refusedAt; bannedAt, bannedUntil   (f64)
 *     48  used in the minute, used in the day   (u32: a limit is a thousand million at most)
 *     56  strikes of the minute   (u24: a ban comes after a million at most)
 *     59  flags   (u8)
 *     60  strikes of the day   (u32)
 */
const MINUTE_USED = 48;
const DAY_USED = 52;
const MINUTE_STRIKES = 56;
const FLAGS = 59;
const DAY_STRIKES = 60;
export const USAGE_BYTES = 64;

/** Standings by slot. */
export class Records extends Pages {
  load(slot: number, into: Usage): void {
    const page = this.page(slot);
    const at = this.offset(slot);
    const { minute, day } = into;
    minute.openedAt = page.getFloat64(at, true);
    minute.refusedAt = page.getFloat64(at + 8, true);
    day.openedAt = page.getFloat64(at + 16, true);
    day.refusedAt = page.getFloat64(at + 24, true);
    into.bannedAt = page.getFloat64(at + 32, true);
    into.bannedUntil = page.getFloat64(at + 40, true);
    minute.used = page.getUint32(at + MINUTE_USED, true);
    day.used = page.getUint32(at + DAY_USED, true);
    minute.strikes =
      page.getUint16(at + MINUTE_STRIKES, true) | (page.getUint8(at + MINUTE_STRIKES + 2) << 16);
    day.strikes = page.getUint32(at + DAY_STRIKES, true);
  }

  store(slot: number, { minute, day, bannedAt, bannedUntil }: Usage): void {
    const page = this.page(slot);
    const at = this.offset(slot);
    page.setFloat64(at, minute.openedAt, true);
    page.setFloat64(at + 8, minute.refusedAt, true);
    page.setFloat64(at + 16, day.openedAt, true);
    page.setFloat64(at + 24, day.refusedAt, true);
    page.setFloat64(at + 32, bannedAt, true);
    page.setFloat64(at + 40, bannedUntil, true);
    page.setUint32(at + MINUTE_USED, minute.used, true);
    page.setUint32(at + DAY_USED, day.used, true);
    page.setUint16(at + MINUTE_STRIKES, minute.strikes, true);
    page.setUint8(at + MINUTE_STRIKES + 2, minute.strikes >>> 16);
    page.setUint32(at + DAY_STRIKES, day.strikes, true);
  }

  flags(slot: number): number {
    return this.page(slot).getUint8(this.offset(slot) + FLAGS);
  }

  setFlags(slot: number, flags: number): void {
    this.page(slot).setUint8(this.offset(slot) + FLAGS, flags);
  }
}
