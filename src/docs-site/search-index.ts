import type { Page } from "./pages/page.ts";

/** A section in the index: the title of its page, its own, its URL from the root of the site, and its text. */
export type SearchEntry = readonly [page: string, section: string, url: string, text: string];

/** Characters of a section that are searched. The index has 13 kB, compressed. */
const MAX_TEXT = 2000;

/** One entry for each page and each of its sections, as JSON. */
export function searchIndex(pages: readonly Page[]): string {
  const entries = pages.flatMap(({ path, title, sections }) =>
    sections.map(({ id, title: heading, text }): SearchEntry => {
      const url = path.slice(1) + (id === "" ? "" : `#${id}`);
      return [title, id === "" ? "" : heading, url, text.slice(0, MAX_TEXT)];
    }),
  );
  return JSON.stringify(entries);
}
