import type { Example, ExampleLanguage } from "../examples/example.ts";
import { EXAMPLE_LANGUAGES } from "../examples/example.ts";

/** A part of a Markdown text that the site lays out in its own way. */
export type Block =
  | { readonly kind: "heading"; readonly level: number; readonly markdown: string }
  | { readonly kind: "code"; readonly syntax: string; readonly code: string }
  | { readonly kind: "examples"; readonly examples: readonly Example[] }
  | { readonly kind: "table"; readonly markdown: string }
  | { readonly kind: "figure"; readonly file: string; readonly alt: string }
  | { readonly kind: "prose"; readonly markdown: string };

const FENCE = /^```(\S*)(?: example=(\w+))?$/;
const HEADING = /^(#{1,6}) /;
const FIGURE = /^!\[([^\]]*)\]\(([\w-]+\.svg)\)$/;
/** The marks of generated blocks. */
const MARK = /^<!-- \/?[a-z-]+ -->$/;

/** Splits a page of docs/ into blocks. Consecutive code blocks that are examples become one. */
export function blocksOf(markdown: string): Block[] {
  const blocks: Block[] = [];
  const lines = markdown.split("\n").filter((line) => !MARK.test(line));
  for (let i = 0; i < lines.length;) {
    const { block, next } = blockAt(lines, i);
    if (block !== undefined) append(blocks, block);
    i = next;
  }
  return blocks;
}

interface Found {
  readonly block: Block | undefined;
  /** The line after the block. */
  readonly next: number;
}

function blockAt(lines: readonly string[], start: number): Found {
  const line = lines[start] ?? "";
  const fence = FENCE.exec(line);
  if (fence !== null) return codeAt(lines, start, fence);
  const figure = FIGURE.exec(line);
  if (figure !== null) {
    return { block: { kind: "figure", alt: figure[1] ?? "", file: figure[2] ?? "" }, next: start + 1 };
  }
  const heading = HEADING.exec(line);
  if (heading !== null) {
    return {
      block: { kind: "heading", level: heading[1]?.length ?? 1, markdown: line },
      next: start + 1,
    };
  }
  const isTable = line.startsWith("|");
  const end = lines.findIndex(
    (each, i) => i > start && (isTable ? !each.startsWith("|") : beginsBlock(each)),
  );
  const next = end === -1 ? lines.length : end;
  const markdown = lines.slice(start, next).join("\n").trim();
  if (markdown === "") return { block: undefined, next };
  return { block: { kind: isTable ? "table" : "prose", markdown }, next };
}

function beginsBlock(line: string): boolean {
  return FENCE.test(line) || HEADING.test(line) || FIGURE.test(line) || line.startsWith("|");
}

function codeAt(lines: readonly string[], start: number, [, syntax = "", language]: RegExpExecArray): Found {
  const end = lines.indexOf("```", start + 1);
  const next = end === -1 ? lines.length : end + 1;
  const code = lines.slice(start + 1, end === -1 ? lines.length : end).join("\n");
  if (!isExampleLanguage(language)) return { block: { kind: "code", syntax, code }, next };
  return { block: { kind: "examples", examples: [{ language, code }] }, next };
}

function isExampleLanguage(language: string | undefined): language is ExampleLanguage {
  return language !== undefined && language in EXAMPLE_LANGUAGES;
}

/** A language that the last examples lack joins them. */
function append(blocks: Block[], block: Block): void {
  const last = blocks.at(-1);
  if (block.kind === "examples" && last?.kind === "examples") {
    const [added] = block.examples;
    if (added !== undefined && !last.examples.some(({ language }) => language === added.language)) {
      blocks[blocks.length - 1] = { kind: "examples", examples: [...last.examples, added] };
      return;
    }
  }
  blocks.push(block);
}

/** What a link of Markdown becomes. Undefined if the site has no such page: the text stays, without a link. */
export type LinkTarget = (href: string) => string | undefined;

const OPTIONS = { noHtmlBlocks: true, noHtmlSpans: true, headings: { ids: true } } as const;
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
