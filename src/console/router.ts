import { createObservable, useObservable } from "./observable.ts";

/** Where the browser is: the URL holds the page, its filters, its order and its range. */
export interface Place {
  readonly path: string;
  readonly query: URLSearchParams;
}

const place = createObservable(currentPlace());

function currentPlace(): Place {
  return { path: location.pathname, query: new URLSearchParams(location.search) };
}

export const usePlace = (): Place => useObservable(place);

export function navigate(url: string, { replace = false } = {}): void {
  if (url === location.pathname + location.search) return;
  if (replace) history.replaceState(null, "", url);
  else history.pushState(null, "", url);
  const before = place.value.path;
  place.set(currentPlace());
  if (before !== place.value.path) scrollTo(0, 0);
}

/** The URL of this page with other query parameters; an empty value removes one. Another filter begins at page one. */
export function urlWith(changes: Readonly<Record<string, string>>, at: Place = place.value): string {
  const query = new URLSearchParams(at.query);
  query.delete("cursor");
  for (const [name, value] of Object.entries(changes)) {
    if (value === "") query.delete(name);
    else query.set(name, value);
  }
  const text = query.toString();
  return text === "" ? at.path : `${at.path}?${text}`;
}

/** Links within the console load nothing: the page changes in place. */
export function startRouter(): void {
  addEventListener("popstate", () => place.set(currentPlace()));
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
