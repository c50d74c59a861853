import type { Request, Response } from "../http1/index.ts";

const REQUEST_ID = /^[!-~]{1,128}$/;

const PROCESS_ID = crypto.randomUUID().slice(0, 8);
let count = 0;

/** Returns the client's `X-Request-Id` if it is 1 to 128 visible ASCII characters, and a new one otherwise. */
export function requestIdOf({ headers }: Pick<Request, "headers">): string {
  const own = headers.get("x-request-id");
  return own !== null && REQUEST_ID.test(own) ? own : newRequestId();
}

export function newRequestId(): string {
  return `${PROCESS_ID}-${(count++).toString(36)}`;
}

/** Every response has `X-Request-Id`. The client's own is visible ASCII, so it cannot inject a header line. */
export function withRequestId({ status, headerLines, body }: Response, requestId: string): Response {
  return { status, headerLines: `${headerLines}X-Request-Id: ${requestId}\r\n`, body };
}
