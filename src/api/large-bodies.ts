import { scheduler, yieldToEventLoop } from "../runtime/scheduler.ts";
import { Overloaded, Unavailable } from "./errors.ts";

/** Few bodies are larger. A body of 16 KiB can take 0.8 ms to parse. */
export const LARGE_BODY_BYTES = 2 * 1024;

/** The most large bodies that wait to be parsed. All together take less than a second. */
export const MAX_LARGE_BODIES = 1_000;

/** The large bodies that wait, of all listeners of the process, which share its event loop. */
let largeBodies = 0;
let lastIteration: Promise<unknown> = Promise.resolve();

/**
 * Handles one large body in each iteration of the event loop, with requests of other clients in between. A request that
 * has waited for longer than its timeout was responded to, so it does nothing more.
 */
export function inOwnIteration<T>(work: () => T, timeoutMs: number): Promise<T> {
  if (largeBodies >= MAX_LARGE_BODIES)
    throw new Overloaded(`${MAX_LARGE_BODIES} large bodies wait to be parsed`);
  largeBodies++;
  const since = scheduler.now();
  const iteration = lastIteration.then(yieldToEventLoop).then(() => {
    largeBodies--;
    if (scheduler.now() - since >= timeoutMs) throw new Unavailable("a large body was parsed too late");
    return work();
  });
  lastIteration = iteration.catch(() => {});
  return iteration;
}
