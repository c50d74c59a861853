import { useLayoutEffect } from "preact/hooks";
import { consoleState, updateState } from "./state.ts";

/** What would be lost if this page were left. */
const losses = new Set<{ readonly text: string }>();

/** While there is a text, it asks before the page is left, by a link, Back or a reload. */
export function useLeaveGuard(text: string | undefined): void {
  useLayoutEffect(() => {
    if (text === undefined) return undefined;
    const loss = { text };
    losses.add(loss);
    return () => void losses.delete(loss);
  }, [text]);
}

function mayLeave(): boolean {
  const [loss] = losses;
  return loss === undefined || confirm(`${loss.text} Leave this page?`);
}

/** How many pages of the console are before this one. */
let position = storedPosition();

function storedPosition(): number {
  return Number(history.state?.position ?? 0);
}

/** How far each page was scrolled when it was left, by its position. */
const places = new Map<number, number>();
/** Where the page that is shown again was; undefined when it is there, or when the person has moved on. */
let place: number | undefined;

/** Scrolls to where the page was, as soon as enough of it is rendered. */
export function restorePlace(): void {
  if (place === undefined) return;
  scrollTo(0, place);
  if (scrollY >= place - 1) place = undefined;
}

/** `isDone`: what was typed on this page is saved. */
export function navigate(url: string, { replace = false, isDone = false } = {}): void {
  if (url === location.pathname + location.search) return;
  if (!isDone && url.split("?")[0] !== location.pathname && !mayLeave()) return;
  places.set(position, scrollY);
  place = undefined;
  if (replace) history.replaceState({ position }, "", url);
  else history.pushState({ position: ++position }, "", url);
  const before = consoleState.path;
  showLocation();
  if (before !== consoleState.path) scrollTo(0, 0);
}

function showLocation(): void {
  const { pathname: path, search } = location;
  const isNewPage = path !== consoleState.path;
  updateState({
    path,
    query: new URLSearchParams(search),
    ...(isNewPage && { dialog: undefined, unreadable: {} }),
  });
}

/** The URL of this page with other query parameters; an empty value removes one. Another filter begins at page one. */
export function urlWith(changes: Readonly<Record<string, string>>): string {
  const { path } = consoleState;
  const query = new URLSearchParams(consoleState.query);
  query.delete("cursor");
  for (const [name, value] of Object.entries(changes)) {
    if (value === "") query.delete(name);
    else query.set(name, value);
  }
  return query.size === 0 ? path : `${path}?${query}`;
}

/** Links within the console load nothing: only the page changes. */
export function startRouter(): void {
  addEventListener("popstate", () => {
    const steps = position - storedPosition();
    // The browser has left already: it goes back to the page that is still shown.
    if (location.pathname !== consoleState.path && !mayLeave()) return history.go(steps);
    places.set(position, scrollY);
    position -= steps;
    place = places.get(position);
    showLocation();
  });
  // The browser would do it before there is anything to scroll.
  history.scrollRestoration = "manual";
  for (const type of ["wheel", "pointerdown", "keydown"]) addEventListener(type, () => (place = undefined));
  addEventListener("beforeunload", (event) => {
    if (losses.size > 0) event.preventDefault();
  });
  document.addEventListener("click", (event) => {
    const isPlainClick =
      event.button === 0 && !event.metaKey && !event.ctrlKey && !event.shiftKey && !event.altKey;
    if (event.defaultPrevented || !isPlainClick || !(event.target instanceof Element)) return;
    const link = event.target.closest("a");
    if (link === null || link.origin !== location.origin || link.target !== "" || link.hash !== "") return;
    event.preventDefault();
    navigate(link.pathname + link.search);
  });
}
