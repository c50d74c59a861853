import type { Example } from "./browser/programs.ts";
import { highlight } from "./highlight.ts";
import { withLinks } from "./links.ts";
import { EXAMPLE_LANGUAGES } from "./page-data.ts";

const OPTIONS = { noHtmlBlocks: true, noHtmlSpans: true } as const;

/** HTML of Markdown on the page at `path`. HTML in it stays text. */
export function htmlOf(markdown: string, path: string): string {
  return callouts(framedTables(longCode(withLinks(Bun.markdown.html(markdown, OPTIONS), path))));
}

/** Code in a sentence is not broken, unless it may be wider than the column. */
function longCode(html: string): string {
  return html.replace(/<code>(?=[^<]{37})/g, '<code class="long">');
}

/** HTML of a sentence, without a paragraph around it. */
export function inlineHtml(markdown: string, path: string): string {
  return htmlOf(markdown, path)
    .trim()
    .replace(/^<p>|<\/p>$/g, "");
}

/** A table in Markdown. */
export function markdownTable(header: readonly string[], rows: readonly (readonly string[])[]): string {
  const lines = [header, header.map(() => "---"), ...rows];
  return lines
    .map((cells) => `|${cells.map((cell) => (cell === "" ? " " : ` ${cell} `)).join("|")}|`)
    .join("\n");
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

/** A quotation is a warning, or says that something is deprecated. */
function callouts(html: string): string {
  return html.replace(/<blockquote>(?=(.*?)<\/blockquote>)/gs, (_, text: string) => {
    const meaning = /deprecated/i.test(text) ? "deprecated" : "limited";
    return `<blockquote class="callout" data-meaning="${meaning}">`;
  });
}

/** The number of characters that fit into one row on a phone. */
const MAX_ROW = 36;
/** The number of characters that fit before a column of sentences. */
const MAX_BEFORE_LAST = 12;

/** Whether the columns fit beside one another on a phone. */
function isNarrow(rows: readonly (readonly string[])[]): boolean {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  const sum = widths.reduce((total, width) => total + width, 0);
  return sum <= MAX_ROW || sum - (widths.at(-1) ?? 0) <= MAX_BEFORE_LAST;
}

/** The columns before it are about the same thing as the row, and need no headings in its block. */
const FIRST_LABELLED = 2;

/**
 * Tables that can be scrolled with the keyboard. On a narrow screen each row of a wide one becomes a block; a cell that
 * is no sentence has the heading of its column there.
 */
function framedTables(html: string): string {
  return html.replace(/<table>.*?<\/table>/gs, (table) => {
    const columns = Array.from(table.matchAll(/<th\b[^>]*>(.*?)<\/th>/gs), ([, heading = ""]) =>
      textOf(heading),
    );
    let cell = 0;
    const labelled = table.replace(
      /<td\b([^>]*)>(.*?)<\/td>/gs,
      (all, attributes: string, content: string) => {
        const column = cell++ % columns.length;
        if (column < FIRST_LABELLED || content === "" || /^[A-Z]/.test(content)) return all;
        return `<td${attributes} data-label="${Bun.escapeHTML(columns[column] ?? "")}">${content}</td>`;
      },
    );
    const rows = Array.from(table.matchAll(/<tr>(.*?)<\/tr>/gs), ([, row = ""]) =>
      Array.from(row.matchAll(/<td\b[^>]*>(.*?)<\/td>/gs), ([, content = ""]) => textOf(content)),
    );
    const shape = isNarrow(rows.filter((row) => row.length > 0)) ? "<table>" : '<table class="stacks">';
    return `<div class="table" tabindex="0">${labelled.replace("<table>", shape)}</div>`;
  });
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
