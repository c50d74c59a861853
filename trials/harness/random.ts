/** A generator of pseudo-random numbers (mulberry32). The same seed makes the same numbers. */
export class Random {
  constructor(private state: number) {}

  /** A number from 0 up to 1, which is excluded. */
  fraction(): number {
    this.state = (this.state + 0x6d2b79f5) | 0;
    let t = Math.imul(this.state ^ (this.state >>> 15), this.state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  }

  /** An integer from 0 up to `end`, which is excluded. */
  below(end: number): number {
    return Math.floor(this.fraction() * end);
  }

  between(start: number, end: number): number {
    return start + this.fraction() * (end - start);
  }

  chance(oneIn: number): boolean {
    return this.below(oneIn) === 0;
  }

  pick<T>(items: readonly [T, ...T[]]): T {
    return items[this.below(items.length)] ?? items[0];
  }

  /** A text of characters with codes from `first` to `last`. */
  text(length: number, first = 0x20, last = 0x7e): string {
    let text = "";
    for (let i = 0; i < length; i++) text += String.fromCharCode(first + this.below(last - first + 1));
    return text;
  }
}
