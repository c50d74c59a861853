/** A value or a promise of it. An embedded database returns values, so its requests wait for no promise. */
export type Awaitable<T> = T | Promise<T>;

/** Continues with a value, at once, or with the value of a promise. */
export function andThen<T, R>(value: Awaitable<T>, next: (value: T) => Awaitable<R>): Awaitable<R> {
  return value instanceof Promise ? value.then(next) : next(value);
}

/** Runs `work`, and turns an error that it throws or rejects with into a value. */
export function recover<T>(work: () => Awaitable<T>, onError: (error: unknown) => T): Awaitable<T> {
  try {
    const value = work();
    return value instanceof Promise ? value.catch(onError) : value;
  } catch (error) {
    return onError(error);
  }
}
