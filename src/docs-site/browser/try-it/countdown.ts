import { useEffect, useState } from "preact/hooks";

/** Whole seconds until a time on the clock of `performance`, rounded up; 0 without one, or once it has passed. */
export function useSecondsUntil(time: number | undefined): number {
  const [, setTick] = useState(0);
  const seconds = time === undefined ? 0 : Math.max(0, Math.ceil((time - performance.now()) / 1_000));
  useEffect(() => {
    if (seconds === 0 || time === undefined) return undefined;
    // At the moment at which the number changes.
    const timer = setTimeout(
      () => setTick((tick) => tick + 1),
      time - performance.now() - (seconds - 1) * 1_000,
    );
    return () => clearTimeout(timer);
  });
  return seconds;
}

/** `60 s`, `12 min`, `23 h 59 min`. */
export function durationText(seconds: number): string {
  if (seconds < 120) return `${seconds} s`;
  const minutes = Math.ceil(seconds / 60);
  if (minutes < 60) return `${minutes} min`;
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}
