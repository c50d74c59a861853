import type { Status } from "./response.ts";

/** Called after each response of a connection. A slowed connection waits before its next request. */
export type Pacer = (status: Status) => "continue" | "slow down" | "close";

/** The rejections before a connection is slowed. A client that waits as `Retry-After` asks has far fewer. */
const MAX_UNSLOWED_REJECTIONS = 20;
/** The rejection with which a connection closes. */
const MAX_REJECTIONS = 1_000;

/** Slows clients that continue without a valid key or quota, by the number of consecutive 401 and 429 responses. */
export function slowRejectedClients(): Pacer {
  let rejections = 0;
  return (status) => {
    rejections = status === 401 || status === 429 ? rejections + 1 : 0;
    if (rejections <= MAX_UNSLOWED_REJECTIONS) return "continue";
    return rejections < MAX_REJECTIONS ? "slow down" : "close";
  };
}
