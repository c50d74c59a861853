import type { TryItData } from "../try-it-data.ts";

/** A page of the site without what all pages share. */
export interface Page {
  /** From the root of the site: `/docs/rate-limits`. */
  readonly path: string;
  readonly title: string;
  /** One sentence for search engines and the page itself. */
  readonly description: string;
  /** What is in `<main>`. */
  readonly html: string;
  /** In the order of the page; the first is the page itself, without an id. */
  readonly sections: readonly Section[];
  readonly tryIt?: TryItData;
}

/** A part of a page that can be linked to. */
export interface Section {
  readonly id: string;
  readonly title: string;
  /** The level of its heading. */
  readonly level: number;
  /** For the search. */
  readonly text: string;
}
