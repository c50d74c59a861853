import type { Example } from "../examples/example.ts";
import { ExampleTabs, languagesOf } from "../markdown/code-blocks.ts";
import { textOf } from "../markdown/blocks.ts";
import type { Section } from "./page.ts";

interface Heading {
  readonly level: number;
  readonly id: string;
  /** Without links. */
  readonly html: string;
  /** Further attributes or elements after the heading, such as a badge. */
  readonly after?: string;
}

/**
 * The content of a page in rows: prose on the left, the code that belongs to it on the right. On a narrow screen they
 * follow one another.
 */
export class PageContent {
  readonly #tabs = new ExampleTabs();
  readonly #rows: string[] = [];
  readonly #sections: { id: string; title: string; level: number; text: string }[] = [];
  #prose = "";
  #code = "";

  heading({ level, id, html, after = "" }: Heading): void {
    if (level <= 2 || this.#code !== "") this.#endRow();
    // A page is found by its title, a section by its heading.
    this.#sections.push({ id: level === 1 ? "" : id, title: textOf(html), level, text: textOf(after) });
    const content = level === 1 ? html : `<a class="heading-link" href="#${id}">${html}</a>`;
    this.#prose += `<h${level} id="${id}">${content}${after}</h${level}>`;
  }

  prose(html: string): void {
    if (this.#code !== "") this.#endRow();
    this.#prose += html;
    this.#addText(html);
  }

  /** Stands beside the prose before it. */
  code(html: string): void {
    this.#code += html;
  }

  /** Found by the names of their languages. */
  examples(examples: readonly Example[]): void {
    this.code(this.#tabs.render(examples));
    this.#addText(languagesOf(examples));
  }

  /** Takes both columns, under its heading. */
  wide(html: string): void {
    this.#endRow();
    this.#rows.push(`<div class="row wide">${html}</div>`);
    this.#addText(html);
  }

  finish(): { readonly html: string; readonly sections: readonly Section[] } {
    this.#endRow();
    return { html: this.#rows.join("\n"), sections: this.#sections };
  }

  #addText(html: string): void {
    const section = this.#sections.at(-1);
    if (section !== undefined) section.text = `${section.text} ${textOf(html)}`.trim();
  }

  #endRow(): void {
    if (this.#prose === "" && this.#code === "") return;
    const code = this.#code === "" ? "" : `<div class="aside">${this.#code}</div>`;
    this.#rows.push(`<div class="row"><div class="prose">${this.#prose}</div>${code}</div>`);
    this.#prose = "";
    this.#code = "";
  }
}
