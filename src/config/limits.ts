import type { Limits } from "../domain/rate-limit.ts";
import { integer, type Kind } from "./kinds.ts";

/** A thousand million: far above any real plan, and sums of two still count exactly. */
export const requestCount = integer({ min: 1, max: 1_000_000_000 });
const RANGE = `${requestCount.range} each`;

/**
 * Both limits of a plan, `60/1000`. A day's limit below the minute's is allowed: each window stands for itself, the
 * day's then binds first, and lowering one number never forces an operator to touch the other.
 */
export const limitPair: Kind<Limits> = {
  placeholder: "MINUTE/DAY",
  expected: `requests per minute and per day such as 60/1000, from ${RANGE}`,
  range: RANGE,
  read: (text) => {
    const [perMinute, perDay, ...rest] = text.split("/").map(requestCount.read);
    if (perMinute === undefined || perDay === undefined || rest.length > 0) return undefined;
    return { perMinute, perDay };
  },
  write: ({ perMinute, perDay }) => `${perMinute}/${perDay}`,
};
