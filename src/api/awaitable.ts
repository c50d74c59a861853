/** A value now or later: embedded databases return at once, and nothing on their path waits for a promise. */
export type Awaitable<T> = T | Promise<T>;

/** Continues with a value that may not be there yet; a value that is there costs no promise and no turn of the loop. */
export function andThen<T, R>(value: Awaitable<T>, next: (value: T) => Awaitable<R>): Awaitable<R> {
  return value instanceof Promise ? value.then(next) : next(value);
}

/** Runs `work`; an error that it throws or rejects with becomes a value. */
export function recover<T>(work: () => Awaitable<T>, onError: (error: unknown) => T): Awaitable<T> {
  try {
    const value = work();
    return value instanceof Promise ? value.catch(onError) : value;
  } catch (error) {
    return onError(error);
  }
}

/** Loads a value when it is first asked for, and keeps it. After an error the next call tries again. */
export function loadOnce<T>(load: () => Awaitable<T>): () => Awaitable<T> {
  let loaded: Awaitable<T> | undefined;
  return () => {
    if (loaded !== undefined) return loaded;
    const value = load();
    loaded = value;
    if (value instanceof Promise) {
      value.then(
        (settled) => (loaded = settled),
        () => (loaded = undefined),
      );
    }
    return value;
  };
}
