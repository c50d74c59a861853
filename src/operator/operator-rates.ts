import type { Rejection } from "../api/errors.ts";
import { MAX_OPERATORS } from "../domain/operators.ts";
import type { Clock } from "../domain/ports/clock.ts";
import { MAX_ADMIN_BODY_BYTES } from "../domain/size-limits.ts";
import type { Request } from "../http1/index.ts";
import { BoundedMap } from "../runtime/bounded-map.ts";
import { scheduler } from "../runtime/scheduler.ts";
import { TokenBucket, type TokenBucketOptions } from "../runtime/token-bucket.ts";
import { tooManyRequests } from "./errors.ts";

export type OperatorRate = Pick<TokenBucketOptions, "max" | "perSecond">;

/**
 * The requests of one operator, with all tokens and sessions together: 200 at once, and 50 a second. A page of the
 * console sends three every two seconds. An operation that takes long counts as several: with 10,000 keys on SQLite, a
 * program that sends as much as it can takes less than half of a core.
 */
export const OPERATOR_RATE: OperatorRate = { max: 200, perSecond: 50 };

/**
 * Each 4 KiB of a body count as one more request: other requests wait for up to 8 ms while a body of 64 KiB is parsed.
 * The console and the command line send less than that, except for long notes of a key.
 */
const BODY_BYTES_PER_REQUEST = 4 * 1024;

/** The wait before a rejection: a program that does not wait for its `Retry-After` gets few of them. */
const REJECTION_DELAY_MS = 250;

/** Limits the requests of each operator, so that no token can slow clients down. */
export class OperatorRates {
  /** Operators who are revoked do not come back. */
  readonly #buckets = new BoundedMap<number, TokenBucket>(MAX_OPERATORS);

  constructor(
    private readonly clock: Pick<Clock, "steadyNow">,
    private readonly rate = OPERATOR_RATE,
  ) {}

  /** Counts a request of an operator, which counts as `cost` requests and its body, unless it exceeds the rate. */
  async take(
    operatorId: number,
    request: Pick<Request, "headers">,
    cost = 1,
  ): Promise<Rejection<"too_many_requests"> | undefined> {
    const bucket = this.#buckets.get(operatorId) ?? this.#add(operatorId);
    const count = cost + bodyCost(request);
    if (bucket.take({ count })) return undefined;
    await scheduler.sleep(REJECTION_DELAY_MS);
    return tooManyRequests(Math.ceil(count / this.rate.perSecond));
  }

  #add(operatorId: number): TokenBucket {
    const bucket = new TokenBucket({ ...this.rate, now: () => this.clock.steadyNow() });
    this.#buckets.set(operatorId, bucket);
    return bucket;
  }
}

/** A body whose length is not known yet counts as the longest one. */
function bodyCost({ headers }: Pick<Request, "headers">): number {
  const isChunked = headers.get("transfer-encoding") !== null;
  const bytes = isChunked ? Infinity : Number(headers.get("content-length") ?? 0);
  return Math.floor(Math.min(bytes, MAX_ADMIN_BODY_BYTES) / BODY_BYTES_PER_REQUEST);
}
