interface Bucket {
  readonly from: number;
  /** Of the last request. */
  at: number;
  count: number;
  /** Whether Valkey knows of them: not yet, perhaps, or for sure. */
  state: "new" | "sent" | "counted";
}

/** Buckets in the length of a window: so much longer than that, at most, does a request count. */
const BUCKETS_PER_WINDOW = 60;

/** The requests that a server gave a key in and after an outage, by time. */
export class GivenRequests {
  readonly #lengthMs: number;
  /** The oldest first. */
  #buckets: Bucket[] = [];

  constructor(lengthMs: number) {
    this.#lengthMs = lengthMs;
  }

  get bucketCount(): number {
    return this.#buckets.length;
  }

  count(...states: readonly Bucket["state"][]): number {
    return this.#buckets.reduce((sum, { state, count }) => sum + (states.includes(state) ? count : 0), 0);
  }

  /** When the first of them was given that is not as old as a window is long. */
  firstUncountedAt(now: number): number | undefined {
    const bucket = this.#buckets.find(({ state }) => state !== "counted");
    return bucket && (bucket.from > now - this.#lengthMs ? bucket.from : bucket.at);
  }

  /** When the oldest were given: they expire together. */
  get oldestAt(): number | undefined {
    return this.#buckets[0]?.at;
  }

  add(now: number, state: "new" | "counted"): void {
    this.#append({ from: now, at: now, count: 1, state });
  }

  /** Valkey has counted a request after all. Does nothing if it has expired. */
  countedLate(givenAt: number): void {
    const index = this.#buckets.findIndex(
      ({ from, at, state }) => from <= givenAt && givenAt <= at && state !== "counted",
    );
    const bucket = this.#buckets[index];
    if (bucket === undefined) return;
    bucket.count--;
    if (bucket.count === 0) this.#keep((each) => each !== bucket);
    const before = this.#buckets[index - 1];
    if (before?.state === "counted" && before.at === givenAt) before.count++;
    else this.#buckets.splice(index, 0, { from: givenAt, at: givenAt, count: 1, state: "counted" });
  }

  /** Forgets those that are as old as a window is long. */
  expire(now: number): void {
    const [oldest] = this.#buckets;
    if (oldest && oldest.at <= now - this.#lengthMs) this.#keep(({ at }) => at > now - this.#lengthMs);
  }

  dropCounted(): void {
    this.#keep(({ state }) => state !== "counted");
  }

  clear(): void {
    this.#buckets = [];
  }

  #keep(isKept: (bucket: Bucket) => boolean): void {
    this.#buckets = this.#buckets.filter(isKept);
  }

  mark(before: Bucket["state"], after: Bucket["state"]): void {
    const buckets = this.#buckets;
    this.#buckets = [];
    for (const bucket of buckets)
      this.#append({ ...bucket, state: bucket.state === before ? after : bucket.state });
  }

  /** Joins the last bucket if it is as new and has the same state. */
  #append(bucket: Bucket): void {
    const last = this.#buckets.at(-1);
    if (last?.state === bucket.state && bucket.at - last.from < this.#lengthMs / BUCKETS_PER_WINDOW) {
      last.at = bucket.at;
      last.count += bucket.count;
    } else {
      this.#buckets.push(bucket);
    }
  }
}
