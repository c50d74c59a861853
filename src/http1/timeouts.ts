/** Longer than load balancers keep idle connections, so that they close first and no request meets a closed one. */
export const IDLE_TIMEOUT_SECONDS = 75;
/** For the first byte of the first request: a client connects because it has something to send. */
export const SILENT_TIMEOUT_SECONDS = 10;
/** After this long without a request, the memory that would make the next one faster is released. */
export const FORGET_SECONDS = 2;
/** From the first byte of a request to the last. */
export const REQUEST_TIMEOUT_SECONDS = 30;
/** For a client that does not read its response; each byte that it reads starts the time again. */
export const WRITE_TIMEOUT_SECONDS = 30;
