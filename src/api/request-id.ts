import type { Request } from "../http1/index.ts";

const VISIBLE_ASCII = /^[!-~]{1,128}$/;

const PROCESS_ID = crypto.randomUUID().slice(0, 8);
let count = 0;

/** The client's own `X-Request-Id` if it is 1 to 128 visible ASCII characters, a new one otherwise. */
export function requestIdOf({ headers }: Pick<Request, "headers">): string {
  const own = headers.get("x-request-id");
  return own !== null && VISIBLE_ASCII.test(own) ? own : newRequestId();
}

export function newRequestId(): string {
  return `${PROCESS_ID}-${(count++).toString(36)}`;
}
