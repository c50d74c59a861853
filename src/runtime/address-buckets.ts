import { BoundedMap } from "./bounded-map.ts";
import { TokenBucket, type TokenBucketOptions } from "./token-bucket.ts";

type Rate = Pick<TokenBucketOptions, "max" | "perSecond">;

interface AddressBucketsOptions {
  readonly each: Rate;
  readonly all: Rate;
  /** Returns milliseconds. */
  readonly now: () => number;
}

const MAX_ADDRESSES = 10_000;

/**
 * Limits how often something happens that needs no credential: for each address, and for all together. What an address
 * sends beyond its limit takes nothing from the others.
 */
export class AddressBuckets {
  readonly #options: AddressBucketsOptions;
  readonly #all: TokenBucket;
  readonly #each = new BoundedMap<string, TokenBucket>(MAX_ADDRESSES);

  constructor(options: AddressBucketsOptions) {
    this.#options = options;
    this.#all = this.#bucket(options.all);
  }

  /** Takes a token of the address and one of all, if both have one. */
  take(address: string): boolean {
    const bucket = this.#each.get(address) ?? this.#bucket(this.#options.each);
    this.#each.set(address, bucket);
    return bucket.take() && this.#all.take();
  }

  #bucket(rate: Rate): TokenBucket {
    return new TokenBucket({ ...rate, now: this.#options.now });
  }
}
