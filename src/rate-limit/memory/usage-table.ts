import { isExpired, newUsage, type Subject, type Usage } from "../../domain/rate-limit.ts";
import { HashIndex, hashText, NONE } from "../../hash-index.ts";

export { NONE };

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
const USAGE_BYTES = 64;
const MINUTE_USED = 48;
const DAY_USED = 52;
const MINUTE_STRIKES = 56;
const FLAGS = 59;
const DAY_STRIKES = 60;

/** A subject has the slot. */
const LIVE = 1;
/** The slot waits to be written to the store, whichever subject has it by then: the flag outlasts a removal. */
export const QUEUED = 2;
const IS_KEY = 4;

/**
 * Slot n below this belongs to the key with id n. Every other subject is found by hash: keys with greater ids too, so
 * that a few ids far apart do not take the memory of all ids between them.
 */
const KEY_SLOTS = 1 << 20;

/**
 * Behind the usage in a slot that is found by hash: the length of the subject's id, and the id, a byte a character. An
 * address is printed by the server, so it is ASCII and has fewer than 50 characters.
 */
const ID_LENGTH = USAGE_BYTES;
const ID = USAGE_BYTES + 1;
const MAX_ID_LENGTH = 63;
const FITS = new RegExp(`^[\\x20-\\x7e]{0,${MAX_ID_LENGTH}}$`);

/** A page has 4,096 slots. Adding one moves nothing, and the system gives it memory only where it is used. */
const PAGE_SHIFT = 12;
const PAGE_MASK = (1 << PAGE_SHIFT) - 1;

const ascii = new TextDecoder();
const NEW_USAGE = newUsage();

const SAMPLES = 16;
/** Slots checked by one sweep. There are two sweeps a second, so a million slots take two minutes. */
const SWEEP_SLOTS = 4_096;

/** From `start` up to, and without, `end`. */
interface SlotRange {
  readonly start: number;
  readonly end: number;
  /** The last slot that was swept. */
  sweptTo: number;
}

/** The usage of each subject, in numbered slots of memory that the garbage collector does not trace. */
export class UsageTable {
  readonly #pages = Array<DataView | undefined>(KEY_SLOTS >>> PAGE_SHIFT).fill(undefined);
  readonly #index = new HashIndex<Subject>((slot, subject) => this.#hasSubject(slot, subject));
  readonly #freeSlots: number[] = [];
  readonly #scratch = newUsage();
  #addresses = 0;
  /** The slots that were ever in use: by key id, and by hash. */
  readonly #keys = { start: 0, end: 0, sweptTo: 0 };
  readonly #hashed = { start: KEY_SLOTS, end: KEY_SLOTS, sweptTo: KEY_SLOTS };
  readonly #ranges: readonly SlotRange[] = [this.#keys, this.#hashed];

  /** How many there are. */
  get addresses(): number {
    return this.#addresses;
  }

  /** The subject's slot, or NONE. */
  find(subject: Subject): number {
    if (hasKeySlot(subject)) return this.isLive(subject.id) ? subject.id : NONE;
    return this.#index.find(hashOf(subject), subject);
  }

  /** Gives a subject that has none a slot with a new usage. */
  add(subject: Subject): number {
    const slot = hasKeySlot(subject) ? this.#addKey(subject.id) : this.#addHashed(subject);
    this.store(slot, NEW_USAGE);
    this.setFlags(slot, (this.flags(slot) & QUEUED) | LIVE | (subject.kind === "key" ? IS_KEY : 0));
    if (subject.kind === "address") this.#addresses++;
    return slot;
  }

  #addKey(id: number): number {
    this.#pages[id >>> PAGE_SHIFT] ??= newPage(USAGE_BYTES);
    this.#keys.end = Math.max(this.#keys.end, id + 1);
    return id;
  }

  #addHashed(subject: Subject): number {
    const id = idText(subject);
    if (!FITS.test(id)) throw new RangeError(`an id has at most ${MAX_ID_LENGTH} characters of ASCII`);
    const slot = this.#freeSlots.pop() ?? this.#hashed.end++;
    const page = (this.#pages[slot >>> PAGE_SHIFT] ??= newPage(ID + MAX_ID_LENGTH));
    const at = offset(slot);
    page.setUint8(at + ID_LENGTH, id.length);
    for (let i = 0; i < id.length; i++) page.setUint8(at + ID + i, id.charCodeAt(i));
    this.#index.add(hashOf(subject), slot);
    return slot;
  }

  remove(slot: number): void {
    if (slot >= KEY_SLOTS) {
      this.#index.remove(hashOf(this.subjectAt(slot)), slot);
      this.#freeSlots.push(slot);
    }
    const flags = this.flags(slot);
    if (!(flags & IS_KEY)) this.#addresses--;
    this.setFlags(slot, flags & QUEUED);
  }

  subjectAt(slot: number): Subject {
    if (slot < KEY_SLOTS) return { kind: "key", id: slot };
    const page = this.#page(slot);
    const at = offset(slot);
    const id = ascii.decode(new Uint8Array(page.buffer, at + ID, page.getUint8(at + ID_LENGTH)));
    return readFlags(page, at) & IS_KEY ? { kind: "key", id: Number(id) } : { kind: "address", id };
  }

  *liveSlots(): Generator<number> {
    for (const { start, end } of this.#ranges) {
      for (let slot = start; slot < end; slot++) if (this.isLive(slot)) yield slot;
    }
  }

  /** The slot of the address with the fewest requests in a random sample, an expired one first; or NONE. */
  leastUsedAddress(now: number, random: () => number): number {
    const { start, end } = this.#hashed;
    let least = NONE;
    let leastRequests = Infinity;
    for (let i = 0; i < SAMPLES; i++) {
      const slot = start + Math.floor(random() * (end - start));
      if (!this.isLive(slot) || this.flags(slot) & IS_KEY) continue;
      const usage = this.load(slot, this.#scratch);
      const requests = isExpired(usage, now) ? 0 : usage.day.used;
      if (requests >= leastRequests) continue;
      least = slot;
      leastRequests = requests;
    }
    return least;
  }

  /** The expired subjects among the next few slots. */
  nextExpired(now: number): number[] {
    const expired: number[] = [];
    for (const range of this.#ranges) {
      const { start, end } = range;
      for (let left = Math.min(SWEEP_SLOTS, end - start); left > 0; left--) {
        range.sweptTo = range.sweptTo + 1 < end ? range.sweptTo + 1 : start;
        const slot = range.sweptTo;
        if (this.isLive(slot) && isExpired(this.load(slot, this.#scratch), now)) expired.push(slot);
      }
    }
    return expired;
  }

  isLive(slot: number): boolean {
    const page = this.#pages[slot >>> PAGE_SHIFT];
    return page !== undefined && (readFlags(page, offset(slot)) & LIVE) !== 0;
  }

  /** Into a usage that is used again, or into a new one. */
  load(slot: number, into = newUsage()): Usage {
    const page = this.#page(slot);
    const at = offset(slot);
    const { minute, day } = into;
    minute.openedAt = page.getFloat64(at, true);
    minute.firstRejectedAt = page.getFloat64(at + 8, true);
    day.openedAt = page.getFloat64(at + 16, true);
    day.firstRejectedAt = page.getFloat64(at + 24, true);
    into.bannedAt = page.getFloat64(at + 32, true);
    into.bannedUntil = page.getFloat64(at + 40, true);
    minute.used = page.getUint32(at + MINUTE_USED, true);
    day.used = page.getUint32(at + DAY_USED, true);
    minute.strikes =
      page.getUint16(at + MINUTE_STRIKES, true) | (page.getUint8(at + MINUTE_STRIKES + 2) << 16);
    day.strikes = page.getUint32(at + DAY_STRIKES, true);
    return into;
  }

  store(slot: number, usage: Usage): void {
    const page = this.#page(slot);
    const at = offset(slot);
    const { minute, day } = usage;
    page.setFloat64(at, minute.openedAt, true);
    page.setFloat64(at + 8, minute.firstRejectedAt, true);
    page.setFloat64(at + 16, day.openedAt, true);
    page.setFloat64(at + 24, day.firstRejectedAt, true);
    page.setFloat64(at + 32, usage.bannedAt, true);
    page.setFloat64(at + 40, usage.bannedUntil, true);
    page.setUint32(at + MINUTE_USED, minute.used, true);
    page.setUint32(at + DAY_USED, day.used, true);
    page.setUint16(at + MINUTE_STRIKES, minute.strikes, true);
    page.setUint8(at + MINUTE_STRIKES + 2, minute.strikes >>> 16);
    page.setUint32(at + DAY_STRIKES, day.strikes, true);
  }

  flags(slot: number): number {
    return readFlags(this.#page(slot), offset(slot));
  }

  setFlags(slot: number, flags: number): void {
    this.#page(slot).setUint8(offset(slot) + FLAGS, flags);
  }

  #hasSubject(slot: number, subject: Subject): boolean {
    const page = this.#page(slot);
    const at = offset(slot);
    const isKey = (readFlags(page, at) & IS_KEY) !== 0;
    const id = idText(subject);
    if (isKey !== (subject.kind === "key") || page.getUint8(at + ID_LENGTH) !== id.length) return false;
    for (let i = 0; i < id.length; i++) {
      if (page.getUint8(at + ID + i) !== id.charCodeAt(i)) return false;
    }
    return true;
  }

  #page(slot: number): DataView {
    const page = this.#pages[slot >>> PAGE_SHIFT];
    if (page === undefined) throw new RangeError(`slot ${slot} does not exist`);
    return page;
  }
}

function newPage(slotBytes: number): DataView {
  return new DataView(new ArrayBuffer(slotBytes << PAGE_SHIFT));
}

function offset(slot: number): number {
  return (slot & PAGE_MASK) * (slot < KEY_SLOTS ? USAGE_BYTES : ID + MAX_ID_LENGTH);
}

function hasKeySlot(subject: Subject): subject is Subject & { kind: "key" } {
  return subject.kind === "key" && subject.id < KEY_SLOTS;
}

function hashOf(subject: Subject): number {
  return hashText(idText(subject));
}

function idText({ id }: Subject): string {
  return typeof id === "string" ? id : String(id);
}

function readFlags(page: DataView, at: number): number {
  return page.getUint8(at + FLAGS);
}
