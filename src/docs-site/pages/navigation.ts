import { OPERATIONS, type PetstoreOperation } from "../../petstore/operations.ts";
import { ERROR_CODES_PATH, operationPath, SCHEMAS_PATH } from "../guides.ts";
import { methodBadge } from "./operation-page.ts";
import type { Page, Section } from "./page.ts";
import { relativeUrl } from "../site-path.ts";

interface Entry {
  readonly path: string;
  readonly html: string;
}

interface Group {
  readonly title: string;
  readonly entries: readonly Entry[];
}

/** A page with more sections would hide the pages below it. */
const MAX_SECTIONS = 12;

/** The sidebar: all pages, and the sections of the one at `path`. */
export class Navigation {
  readonly #groups: readonly Group[];

  constructor(guides: readonly Page[]) {
    this.#groups = [
      { title: "Guides", entries: guides.map(({ path, title }) => ({ path, html: Bun.escapeHTML(title) })) },
      { title: "Pets", entries: operationEntries("Pets") },
      { title: "Orders", entries: operationEntries("Orders") },
      {
        title: "Reference",
        entries: [
          { path: SCHEMAS_PATH, html: "Schemas" },
          { path: ERROR_CODES_PATH, html: "Error codes" },
        ],
      },
    ];
  }

  html(path: string, sections: readonly Section[]): string {
    const groups = this.#groups.map(({ title, entries }) => {
      const items = entries.map((entry) => item(entry, path, sections));
      return `<h2>${title}</h2><ul>${items.join("")}</ul>`;
    });
    const documents = ["/openapi.json", "/openapi.yaml"].map(
      (each) => `<li><a href="${relativeUrl(path, each)}">${each.slice(1)}</a></li>`,
    );
    return `${groups.join("")}<h2>OpenAPI</h2><ul>${documents.join("")}</ul>`;
  }

  /** The pages before and after the one at `path`. */
  neighbours(path: string): { readonly previous?: Entry | undefined; readonly next?: Entry | undefined } {
    const entries = this.#groups.flatMap((group) => group.entries);
    const index = entries.findIndex((entry) => entry.path === path);
    return index === -1 ? {} : { previous: entries[index - 1], next: entries[index + 1] };
  }
}

function operationEntries(tag: PetstoreOperation["tag"]): Entry[] {
  return Object.entries<PetstoreOperation>(OPERATIONS)
    .filter(([, operation]) => operation.tag === tag)
    .map(([id, { method, path, summary, deprecated }]) => {
      const name = deprecated === undefined ? path : `<s>${path}</s>`;
      const note = deprecated === undefined ? "" : '<span class="visually-hidden">, deprecated</span>';
      const html = `${methodBadge(method)}<span class="path" title="${summary}">${name}</span>${note}`;
      return { path: operationPath(id), html };
    });
}

function item({ path, html }: Entry, current: string, sections: readonly Section[]): string {
  if (path !== current) return `<li><a href="${relativeUrl(current, path)}">${html}</a></li>`;
  const inner = sections.filter(({ level }) => level === 2);
  const list = inner
    .map(({ id, title }) => `<li><a href="#${id}">${Bun.escapeHTML(title)}</a></li>`)
    .join("");
  const nested = inner.length > 0 && inner.length <= MAX_SECTIONS ? `<ul class="sections">${list}</ul>` : "";
  return `<li><a href="${relativeUrl(current, path)}" aria-current="page">${html}</a>${nested}</li>`;
}
