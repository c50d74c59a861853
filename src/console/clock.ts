import { createObservable, useObservable } from "./observable.ts";

const clock = createObservable(Date.now());

export function startClock(): void {
  setInterval(() => clock.set(Date.now()), 1_000);
}

/** The time in milliseconds, once a second: "2 s ago" counts on. */
export const useNow = (): number => useObservable(clock);
