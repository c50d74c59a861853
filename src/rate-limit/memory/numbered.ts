import type { Subject } from "../../domain/rate-limit.ts";
import { USAGE_BYTES } from "./records.ts";
import { NONE, Slots } from "./slots.ts";

/**
 * Keys numbered from here on are found by hashing, so that a few of them far apart cannot claim memory for all
 * between.
 */
export const NUMBERED_KEYS = 1 << 20;

const PREFIX = "key:";
const MAX_DIGITS = 7;
const ZERO = 48;

let lastSubject: Subject | undefined;
let lastNumber = NONE;

/** The number of a key that lives in its own slot, or NONE for every other subject. The same one is often next. */
export function numberOf(subject: Subject): number {
  if (subject !== lastSubject) {
    lastNumber = readNumber(subject);
    lastSubject = subject;
  }
  return lastNumber;
}

function readNumber(subject: Subject): number {
  const { length } = subject;
  if (length > PREFIX.length + MAX_DIGITS || length === PREFIX.length || !subject.startsWith(PREFIX))
    return NONE;
  let number = 0;
  for (let i = PREFIX.length; i < length; i++) {
    const digit = subject.charCodeAt(i) - ZERO;
    if (digit < 0 || digit > 9 || (number === 0 && i > PREFIX.length)) return NONE;
    number = number * 10 + digit;
  }
  return number < NUMBERED_KEYS ? number : NONE;
}

/** Keys, each in the slot of its own number: one look into memory, where hashing takes at least two. */
export class Numbered extends Slots {
  constructor() {
    super(USAGE_BYTES);
  }

  override find(subject: Subject): number {
    const slot = numberOf(subject);
    return slot !== NONE && this.isLive(slot) ? slot : NONE;
  }

  override add(subject: Subject): number {
    const slot = numberOf(subject);
    this.open(slot);
    this.end = Math.max(this.end, slot + 1);
    this.occupy(slot);
    return slot;
  }

  override remove(slot: number): void {
    this.vacate(slot);
  }

  override subjectAt(slot: number): Subject {
    return `key:${slot}`;
  }
}
