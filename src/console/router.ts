import { createObservable, useObservable } from "./observable.ts";

/** Where the browser is: the URL holds the page, its filters, its order and its range. */
export interface PageLocation {
  readonly path: string;
  readonly query: URLSearchParams;
}

const current = createObservable(readLocation());

function readLocation(): PageLocation {
  return { path: location.pathname, query: new URLSearchParams(location.search) };
}

export const useLocation = (): PageLocation => useObservable(current);

export function navigate(url: string, { replace = false } = {}): void {
  if (url === location.pathname + location.search) return;
  if (replace) history.replaceState(null, "", url);
  else history.pushState(null, "", url);
  const before = current.value.path;
  current.set(readLocation());
  if (before !== current.value.path) scrollTo(0, 0);
}

/** The URL of this page with other query parameters; an empty value removes one. Another filter begins at page one. */
export function urlWith(changes: Readonly<Record<string, string>>, at: PageLocation = current.value): string {
  const query = new URLSearchParams(at.query);
  query.delete("cursor");
  for (const [name, value] of Object.entries(changes)) {
    if (value === "") query.delete(name);
    else query.set(name, value);
  }
  return query.size === 0 ? at.path : `${at.path}?${query}`;
}

/** Links within the console load nothing: only the page changes. */
export function startRouter(): void {
  addEventListener("popstate", () => current.set(readLocation()));
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
