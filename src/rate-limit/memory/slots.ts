import { newUsage, type Subject } from "../../domain/rate-limit.ts";
import { Records } from "./records.ts";

export const NONE = -1;

/** What is known of a slot beside its usage. */
export const LIVE = 1;
/** It waits to be written down, whoever lives in it by then; so this outlasts a removal. */
export const QUEUED = 2;
/** The usageStore has a row of it. */
export const SAVED = 4;
export const IS_KEY = 8;
/** Nothing was left of the window at the last request; the limits themselves are not kept here. */
export const MINUTE_SPENT = 16;
export const DAY_SPENT = 32;

const FRESH = newUsage();

/**
 * Subjects in numbered slots, below `reach`, each with its usage. How a subject finds its slot is up to the kind.
 */
export abstract class Slots extends Records {
  protected live = 0;
  protected end = 0;

  /** How many subjects there are. */
  get size(): number {
    return this.live;
  }

  get reach(): number {
    return this.end;
  }

  /** The subject's slot, or NONE. */
  abstract find(subject: Subject): number;
  /** Gives a subject that was not found a slot and a fresh usage. */
  abstract add(subject: Subject): number;
  abstract remove(slot: number): void;
  abstract subjectAt(slot: number): Subject;

  isLive(slot: number): boolean {
    return this.isOpen(slot) && (this.flags(slot) & LIVE) !== 0;
  }

  protected occupy(slot: number): void {
    this.store(slot, FRESH);
    this.setFlags(slot, LIVE | (this.flags(slot) & QUEUED));
    this.live++;
  }

  protected vacate(slot: number): void {
    this.setFlags(slot, this.flags(slot) & QUEUED);
    this.live--;
  }
}
