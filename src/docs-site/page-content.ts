import type { Example } from "./browser/programs.ts";
import { classesOf } from "../pages/classes.ts";
import { PRODUCT } from "./links.ts";
import { codeBlock, exampleTabs, htmlOf, inlineHtml, textOf } from "./markdown.ts";
import { EXAMPLE_LANGUAGES, type ExampleLanguage, type TryItData } from "./page-data.ts";
import { FIGURES } from "./sources.ts";

/** A page of the site without what all pages share. */
export interface DocsPage {
  /** The path from the root of the site: `/docs/rate-limits`. */
  readonly path: string;
  readonly title: string;
  /** One sentence for search engines. */
  readonly description: string;
  /** What is in `<main>`. */
  readonly html: string;
  /** The sections in the order of the page; the first is the page itself, without an id. */
  readonly sections: readonly Section[];
  /** Whether no code is beside its prose. */
  readonly isProse: boolean;
  readonly tryIt?: TryItData;
  /** The method, path and id of the operation that the page is about. */
  readonly operation?: string;
}

/** A part of a page that can be linked to. */
export interface Section {
  readonly id: string;
  readonly title: string;
  /** The level of its heading. */
  readonly level: number;
  /** The text that the search finds. */
  text: string;
}

/** The marks of generated blocks and of examples. */
const MARK = /^<!-- \/?[a-z-]+ -->$/gm;
const EXAMPLE = /^```\S* example=(?<language>\w+)\n(?<code>.*?)\s*^```$/gms;
const CODE = /^```(?<syntax>\S*)\n(?<code>.*?)\s*^```$/ms;
/** Everything but prose. */
const BLOCK = new RegExp(
  [
    "((?:^```\\S* example=\\w+\\n(?:.*\\n)*?```$\\s*)+",
    "^```\\S*\\n(?:.*\\n)*?```$",
    String.raw`^#+ .*$`,
    String.raw`^!\[.*\.svg\)$(?:\n\n_.*(?:\n.+)*_$)?`,
    String.raw`^\|.*(?:\n\|.*)*)`,
  ].join("|"),
  "m",
);

/** A table of more columns takes the whole width. */
const MAX_NARROW_COLUMNS = 3;

/**
 * The content of a page in rows: prose on the left, the code that belongs to it on the right. On a narrow screen they
 * follow one another.
 */
export class PageContent {
  readonly #rows: string[] = [];
  readonly #sections: Section[] = [];
  #examples = 0;
  #prose = "";
  #code = "";
  #beginsSection = false;
  #hasForm = false;
  #isProse = true;

  /** `path` is that of the page. */
  constructor(readonly path: string) {}

  /** Adds Markdown of docs/: code blocks are next to the prose before them, and wide ones under it. */
  markdown(text: string): void {
    for (const part of text.replace(MARK, "").split(BLOCK)) if (part.trim() !== "") this.#add(part.trim());
  }

  /** HTML, which is found by all of its text, unless that is said to be other text. */
  prose(html: string, text = html): void {
    if (this.#code !== "") this.#endRow();
    this.#prose += html;
    this.#addText(text);
  }

  /** HTML of a form. On a narrow screen the code next to it comes before it. */
  form(html: string, text: string): void {
    this.prose(html, text);
    this.#hasForm = true;
  }

  /** Adds code next to the prose before it. */
  code(html: string): void {
    this.#code += html;
  }

  /** Adds examples. The search finds them by the names of their languages. */
  examples(examples: readonly Example[]): void {
    this.code(exampleTabs(examples, `language-${++this.#examples}`));
    this.#addText(
      `Examples: ${examples.map(({ language }) => EXAMPLE_LANGUAGES[language].label).join(", ")}`,
    );
  }

  /** The first heading is the title of the page, and the first sentence its description. */
  finish(more: Pick<DocsPage, "operation" | "tryIt"> = {}): DocsPage {
    this.#endRow();
    const { title, text } = this.#sections[0] ?? { title: PRODUCT, text: "" };
    const description = /^.*?[.:](?=\s|$)/.exec(text)?.[0].replace(/:$/, ".") ?? text;
    const html = this.#rows.join("\n");
    const sections = this.#sections;
    return { path: this.path, title, description, html, sections, isProse: this.#isProse, ...more };
  }

  #add(markdown: string): void {
    const examples = examplesIn(markdown);
    if (examples.length > 0) return this.examples(examples);
    const { syntax = "", code } = CODE.exec(markdown)?.groups ?? {};
    if (code !== undefined) {
      const html = codeBlock(code, syntax);
      return isWide(code, syntax) ? this.#wide(html) : this.code(html);
    }
    const [, marks, heading = ""] = /^(#+) (.*)$/.exec(markdown) ?? [];
    if (marks !== undefined) return this.#heading(marks.length, heading);
    const [, alt = "", file, caption = ""] = /^!\[(.*)\]\((.*)\)(?:\n\n_(.*)_)?$/s.exec(markdown) ?? [];
    if (file !== undefined) return this.#wide(figure(file, alt, inlineHtml(caption, this.path)));
    const html = htmlOf(markdown, this.path);
    const columns = html.match(/<th[ >]/g) ?? [];
    return columns.length > MAX_NARROW_COLUMNS ? this.#wide(html) : this.prose(html);
  }

  #heading(level: number, markdown: string): void {
    if (level <= 2 || this.#code !== "") this.#endRow();
    if (level === 2) this.#beginsSection = true;
    const html = inlineHtml(markdown, this.path).replace(/<\/?a\b[^>]*>/g, "");
    const title = textOf(html);
    const id = anchorOf(title);
    // A page is found by its title, a section by its heading.
    this.#sections.push({ id: level === 1 ? "" : id, title, level, text: "" });
    const content = level === 1 ? html : `<a class="heading-link" href="#${id}">${html}</a>`;
    this.#prose += `<h${level} id="${id}">${content}</h${level}>`;
  }

  /** Takes both columns, under its heading. */
  #wide(html: string): void {
    this.#endRow();
    this.#rows.push(`<div>${html}</div>`);
    this.#addText(html);
  }

  #addText(html: string): void {
    const section = this.#sections.at(-1);
    if (section !== undefined) section.text = `${section.text} ${textOf(html)}`.trim();
  }

  #endRow(): void {
    if (this.#prose === "" && this.#code === "") return;
    const code = this.#code === "" ? "" : `<div class="aside">${this.#code}</div>`;
    const shape = classesOf({
      row: true,
      "without-code": code === "",
      "begins-section": this.#beginsSection,
      "with-form": this.#hasForm,
    });
    this.#rows.push(`<div class="${shape}"><div class="prose">${this.#prose}</div>${code}</div>`);
    this.#isProse &&= code === "";
    this.#prose = "";
    this.#code = "";
    this.#beginsSection = false;
    this.#hasForm = false;
  }
}

/** Markdown for readers of Markdown: without marks, and with the text of figures in their place. */
export function withoutMarks(markdown: string): string {
  return markdown
    .replace(MARK, "")
    .replace(/^!\[(.*)\]\(.*\.svg\)$/gm, "$1.")
    .replace(/^(```\S*) example=\w+$/gm, "$1")
    .replace(/\n{3,}/g, "\n\n");
}

/** The examples of code blocks that say so. */
export function examplesIn(markdown: string): Example[] {
  return Array.from(markdown.matchAll(EXAMPLE), ({ groups = {} }) => {
    const { language, code = "" } = groups;
    return { language: language as ExampleLanguage, code };
  });
}

/** The anchor is the one that GitHub makes, so that links between the files of docs/ work on both. */
export function anchorOf(title: string): string {
  return title
    .toLowerCase()
    .replace(/[^\p{L}\p{N}_ -]/gu, "")
    .replaceAll(" ", "-");
}

/** Longer lines do not fit into the column of code. */
const MAX_COLUMNS = 72;
/** The syntaxes of data, whose lines wrap. */
const WRAPPED = new Set(["json", "http"]);

function isWide(code: string, syntax: string): boolean {
  return !WRAPPED.has(syntax) && code.split("\n").some((line) => line.length > MAX_COLUMNS);
}

/** A figure with its caption. The page has the colours for which a figure that is shown alone has a style. */
function figure(file: string, alt: string, caption: string): string {
  const svg = (FIGURES[file] ?? "")
    .replace(/<style>.*?<\/style>\s*/s, "")
    .replace("<svg ", `<svg role="img" aria-label="${Bun.escapeHTML(alt)}" `);
  const text = caption === "" ? "" : `<figcaption class="note">${caption}</figcaption>`;
  return `<figure>${svg}${text}</figure>`;
}
