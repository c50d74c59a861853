import { useLayoutEffect, useState } from "preact/hooks";

/** A value that components render again for when it changes. */
interface Observable<T> {
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

const clock = createObservable(Date.now());

export function startClock(): void {
  setInterval(() => clock.set(Date.now()), 1_000);
}

/** The time in milliseconds, once a second: "2 s ago" counts on. */
export const useNow = (): number => useObservable(clock);

const NOTICE_MS = 5_000;
let noticeTimer: ReturnType<typeof setTimeout> | undefined;

/** One short sentence about what was just done. Screen readers read it. */
export const notice = createObservable("");

export function announce(text: string): void {
  notice.set(text);
  clearTimeout(noticeTimer);
  noticeTimer = setTimeout(() => notice.set(""), NOTICE_MS);
}
