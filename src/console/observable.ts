import { useLayoutEffect, useState } from "preact/hooks";

/** A value that components render again for when it changes. */
export interface Observable<T> {
  readonly value: T;
  set(value: T): void;
  /** Returns a function that ends the subscription. */
  subscribe(listener: () => void): () => void;
}

export function createObservable<T>(initial: T): Observable<T> {
  const listeners = new Set<() => void>();
  let current = initial;
  return {
    get value() {
      return current;
    },
    set(value) {
      if (Object.is(value, current)) return;
      current = value;
      for (const listener of listeners) listener();
    },
    subscribe(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}

export function useObservable<T>(observable: Observable<T>): T {
  const [value, setValue] = useState(() => observable.value);
  useLayoutEffect(() => {
    const update = () => setValue(() => observable.value);
    // It may have changed between the first rendering and this subscription.
    update();
    return observable.subscribe(update);
  }, [observable]);
  return value;
}
