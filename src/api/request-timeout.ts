import { Unavailable } from "./errors.ts";

/** Shorter than the time that a shutdown waits for requests in progress. */
export const REQUEST_TIMEOUT_MS = 7_000;

/** Settles as `work` does, or rejects with Unavailable when the time is over. */
export function withTimeout<T>(work: Promise<T>, timeoutMs = REQUEST_TIMEOUT_MS): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Unavailable(`no response within ${timeoutMs} ms`)), timeoutMs);
    work.then(
      (value) => {
        clearTimeout(timer);
        resolve(value);
      },
      (error: unknown) => {
        clearTimeout(timer);
        reject(error);
      },
    );
  });
}
