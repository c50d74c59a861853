import { MAX_NAME_LENGTH } from "./names.ts";
import { USAGE_BYTES } from "./records.ts";
import { Slots } from "./slots.ts";

/**
 * The second cache line of a subject that is found by name.
 *
 *     64  hash of the name, next slot   (i32)
 *     72  length of the name, name      (u8)
 */
const HASH = USAGE_BYTES;
const NEXT = HASH + 4;
const LENGTH = NEXT + 4;
const NAME = LENGTH + 1;

const latin1 = new TextDecoder("latin1");

/** Slots that know a name and a slot that comes after them. */
export abstract class Named extends Slots {
  constructor() {
    super(NAME + MAX_NAME_LENGTH);
  }

  protected setName(slot: number, name: string, hash: number): void {
    const page = this.page(slot);
    const at = this.offset(slot);
    page.setInt32(at + HASH, hash, true);
    page.setUint8(at + LENGTH, name.length);
    for (let i = 0; i < name.length; i++) page.setUint8(at + NAME + i, name.charCodeAt(i));
  }

  protected isNamed(slot: number, name: string, hash: number): boolean {
    const page = this.page(slot);
    const at = this.offset(slot);
    if (page.getInt32(at + HASH, true) !== hash || page.getUint8(at + LENGTH) !== name.length) return false;
    for (let i = 0; i < name.length; i++) {
      if (page.getUint8(at + NAME + i) !== name.charCodeAt(i)) return false;
    }
    return true;
  }

  protected nameAt(slot: number): string {
    const page = this.page(slot);
    const at = this.offset(slot);
    return latin1.decode(new Uint8Array(page.buffer, at + NAME, page.getUint8(at + LENGTH)));
  }

  protected hashAt(slot: number): number {
    return this.page(slot).getInt32(this.offset(slot) + HASH, true);
  }

  protected next(slot: number): number {
    return this.page(slot).getInt32(this.offset(slot) + NEXT, true);
  }

  protected setNext(slot: number, next: number): void {
    this.page(slot).setInt32(this.offset(slot) + NEXT, next, true);
  }
}
