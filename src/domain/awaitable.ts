import type { Awaitable } from "./ports.ts";

/** Goes on with a value that may not be there yet; one that is there costs no promise and no turn of the loop. */
export function andThen<T, R>(value: Awaitable<T>, next: (value: T) => Awaitable<R>): Awaitable<R> {
  return value instanceof Promise ? value.then(next) : next(value);
}
