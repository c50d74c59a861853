import { createObservable } from "./observable.ts";

const SHOWN_MS = 5_000;

/** One short sentence about what was just done. Screen readers read it. */
export const notice = createObservable("");

let timer: ReturnType<typeof setTimeout> | undefined;

export function announce(text: string): void {
  notice.set(text);
  clearTimeout(timer);
  timer = setTimeout(() => notice.set(""), SHOWN_MS);
}
