import type { Example } from "./browser/programs.ts";
import { EXAMPLE_LANGUAGES, type ExampleLanguage } from "./page-data.ts";
import { highlight } from "./highlight.ts";

/** A part of a Markdown text that the site lays out in its own way. */
export type Block =
  | { readonly kind: "heading"; readonly level: number; readonly markdown: string }
  | { readonly kind: "code"; readonly syntax: string; readonly code: string }
  | { readonly kind: "examples"; readonly examples: readonly Example[] }
  | { readonly kind: "table"; readonly markdown: string }
  | { readonly kind: "figure"; readonly file: string; readonly alt: string }
  | { readonly kind: "prose"; readonly markdown: string };

/** Everything but prose. Lines of code and of a table end with a line break. */
const BLOCK = new RegExp(
  [
    "(?<examples>(?:^```\\S* example=\\w+\\n(?:.*\\n)*?```$\\s*)+)",
    "^```(?<syntax>\\S*)\\n(?<code>(?:.*\\n)*?)```$",
    String.raw`^(?<heading>#{1,6}) .*$`,
    String.raw`^!\[(?<alt>[^\]]*)\]\((?<file>[\w-]+\.svg)\)$`,
    String.raw`^(?<table>\|.*(?:\n\|.*)*)`,
  ].join("|"),
  "gm",
);
const EXAMPLE = /^```\S* example=(?<language>\w+)\n(?<code>(?:.*\n)*?)```$/gm;
/** The marks of generated blocks and of examples. */
const MARK = /^<!-- \/?[a-z-]+ -->$/gm;

/** Splits a page of docs/ into blocks. Consecutive code blocks that are examples are one. */
export function blocksOf(markdown: string): Block[] {
  const text = markdown.replace(MARK, "");
  const blocks: Block[] = [];
  let end = 0;
  for (const match of text.matchAll(BLOCK)) {
    blocks.push({ kind: "prose", markdown: text.slice(end, match.index).trim() }, blockOf(match));
    end = match.index + match[0].length;
  }
  blocks.push({ kind: "prose", markdown: text.slice(end).trim() });
  return blocks.filter((block) => block.kind !== "prose" || block.markdown !== "");
}

function blockOf({ 0: markdown, groups = {} }: RegExpExecArray): Block {
  const { examples, syntax = "", code, heading, alt = "", file } = groups;
  if (examples !== undefined) return { kind: "examples", examples: examplesOf(examples) };
  if (code !== undefined) return { kind: "code", syntax, code: code.trimEnd() };
  if (file !== undefined) return { kind: "figure", alt, file };
  if (heading === undefined) return { kind: "table", markdown };
  return { kind: "heading", level: heading.length, markdown: markdown.slice(heading.length + 1) };
}

function examplesOf(markdown: string): Example[] {
  return Array.from(markdown.matchAll(EXAMPLE), ({ groups = {} }) => {
    const { language = "", code = "" } = groups;
    if (!isExampleLanguage(language)) throw new Error(`There are no examples in ${language}`);
    return { language, code: code.trimEnd() };
  });
}

function isExampleLanguage(language: string): language is ExampleLanguage {
  return Object.hasOwn(EXAMPLE_LANGUAGES, language);
}

/** What a link of Markdown becomes. Undefined if the site has no such page: the text stays, without a link. */
export type LinkTarget = (href: string) => string | undefined;

const OPTIONS = { noHtmlBlocks: true, noHtmlSpans: true } as const;
const LINK = /<a href="([^"]*)">(.*?)<\/a>/gs;

/** HTML of Markdown. HTML in it stays text. */
export function htmlOf(markdown: string, linkTarget: LinkTarget): string {
  return Bun.markdown.html(markdown, OPTIONS).replace(LINK, (_link, href: string, text: string) => {
    const target = linkTarget(href);
    return target === undefined ? text : `<a href="${target}">${text}</a>`;
  });
}

/** HTML of a sentence, without a paragraph around it. */
export function inlineHtml(markdown: string, linkTarget: LinkTarget): string {
  return htmlOf(markdown, linkTarget)
    .trim()
    .replace(/^<p>|<\/p>$/g, "");
}

/** The text of HTML, for titles and the search index. */
export function textOf(html: string): string {
  return html
    .replace(/<\/?(?:a|code|em|strong|span)\b[^>]*>/g, "")
    .replace(/<[^>]+>/g, " ")
    .replace(/&lt;/g, "<")
    .replace(/&gt;/g, ">")
    .replace(/&quot;/g, '"')
    .replace(/&#x27;|&#39;/g, "'")
    .replace(/&amp;/g, "&")
    .replace(/\s+/g, " ")
    .trim();
}

/** A table of more columns takes the whole width. */
const MAX_NARROW_COLUMNS = 3;

/**
 * A table that can be scrolled with the keyboard. On a narrow screen each row becomes a block, so each cell has the
 * heading of its column.
 */
export function framedTable(table: string): { readonly html: string; readonly isWide: boolean } {
  const columns = [...table.matchAll(/<th\b[^>]*>(.*?)<\/th>/gs)].map(([, heading = ""]) => textOf(heading));
  const labelled = table.replace(/<tr>(.*?)<\/tr>/gs, (_row, cells: string) => {
    let column = 0;
    const html = cells.replace(/<td\b([^>]*)>(.*?)<\/td>/gs, (_cell, attributes: string, content: string) => {
      const label = Bun.escapeHTML(columns[column++] ?? "");
      return `<td${attributes} data-label="${label}"><span>${content}</span></td>`;
    });
    return `<tr>${html}</tr>`;
  });
  const html = `<div class="table" tabindex="0">${labelled.replace("<table>", '<table class="stacks">')}</div>`;
  return { html, isWide: columns.length > MAX_NARROW_COLUMNS };
}

/** What scrolls on a narrow screen can be scrolled with the keyboard. */
function preformatted(code: string, syntax: string): string {
  return `<pre tabindex="0" data-syntax="${Bun.escapeHTML(syntax)}"><code>${highlight(code, syntax)}</code></pre>`;
}

const SYNTAX_NAMES: Readonly<Record<string, string>> = {
  sh: "Shell",
  http: "HTTP",
  json: "JSON",
  ts: "TypeScript",
  js: "JavaScript",
  python: "Python",
};

/** A code block with a title, by default the name of its syntax. */
export function codeBlock(code: string, syntax: string, title = SYNTAX_NAMES[syntax] ?? ""): string {
  return `<div class="code"><div class="code-title">${Bun.escapeHTML(title)}</div>${preformatted(code, syntax)}</div>`;
}

/**
 * One tab per language. They are radio buttons, so they work without JavaScript; a script keeps the choice. `name` is
 * that of the group on its page.
 */
export function exampleTabs(examples: readonly Example[], name: string): string {
  const tabs = examples.map(({ language }, index) => {
    const checked = index === 0 ? " checked" : "";
    return `<label><input type="radio" name="${name}" value="${language}"${checked}>${EXAMPLE_LANGUAGES[language].label}</label>`;
  });
  const panels = examples.map(
    ({ language, code }) =>
      `<div class="code" data-language="${language}">${preformatted(code, EXAMPLE_LANGUAGES[language].syntax)}</div>`,
  );
  return `<fieldset class="example"><legend class="visually-hidden">Language of the example</legend><div class="tabs">${tabs.join("")}</div>${panels.join("")}</fieldset>`;
}
