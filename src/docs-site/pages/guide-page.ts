import { codeBlock } from "../markdown/code-blocks.ts";
import { GUIDES, type GuideName } from "../guides.ts";
import { linksOn, withSubjectLinks } from "../links.ts";
import { type Block, blocksOf, htmlOf, textOf } from "../markdown/blocks.ts";
import type { Page } from "./page.ts";
import { PageContent } from "./page-content.ts";
import { tryItSection } from "./request-fields.ts";
import { type Blocks, type DocsSettings, replaceBlocks } from "../setting-blocks.ts";
import { FIGURES, GUIDE_SOURCES } from "../sources.ts";
import { framedTable } from "../markdown/tables.ts";
import { tryItData } from "./page-try-it-data.ts";

/** A page of docs/ with the blocks of the server. */
export function guidePage(name: GuideName, settingBlocks: Blocks, settings: DocsSettings): Page {
  const path = GUIDES[name];
  const blocks = blocksOf(replaceBlocks(GUIDE_SOURCES[name], settingBlocks));
  const content = new PageContent();
  for (const [index, block] of blocks.entries()) {
    // Before the first section, so that it is the first thing that a newcomer finds.
    if (name === "quickstart" && index === firstSection(blocks)) addTryIt(content);
    add(block, content, path);
  }
  const { html, sections } = content.finish();
  const page = {
    path,
    title: sections[0]?.title ?? name,
    description: descriptionOf(blocks, path),
    html,
    sections,
  };
  return name === "quickstart" ? { ...page, tryIt: tryItData(["createPet"], path, settings) } : page;
}

function firstSection(blocks: readonly Block[]): number {
  return blocks.findIndex((block) => block.kind === "heading" && block.level === 2);
}

function add(block: Block, content: PageContent, path: string): void {
  const links = linksOn(path);
  switch (block.kind) {
    case "heading": {
      const [, id = "", html = ""] =
        /^<h\d id="([^"]*)">(.*)<\/h\d>/s.exec(htmlOf(block.markdown, links)) ?? [];
      return content.heading({ level: block.level, id, html });
    }
    case "code":
      return content.code(codeBlock(block.code, block.syntax));
    case "examples":
      return content.examples(block.examples);
    case "table": {
      const { html, isWide } = framedTable(withSubjectLinks(htmlOf(block.markdown, links), path));
      return isWide ? content.wide(html) : content.prose(html);
    }
    case "figure":
      return content.wide(figure(block.file, block.alt));
    case "prose":
      return content.prose(withSubjectLinks(htmlOf(block.markdown, links), path));
  }
}

function figure(file: string, alt: string): string {
  const svg = (FIGURES[file] ?? "").replace("<svg ", `<svg role="img" aria-label="${Bun.escapeHTML(alt)}" `);
  return `<figure tabindex="0">${svg}</figure>`;
}

function addTryIt(content: PageContent): void {
  content.heading({ level: 2, id: "try-it", html: "Try it here" });
  content.wide(
    `<p>Add a pet from this page, with your own key.</p>${tryItSection("createPet", GUIDES.quickstart)}`,
  );
}

function descriptionOf(blocks: readonly Block[], path: string): string {
  const first = blocks.find((block) => block.kind === "prose");
  const text = first?.kind === "prose" ? textOf(htmlOf(first.markdown, linksOn(path))) : "";
  return /^.*?[.:](?=\s|$)/.exec(text)?.[0].replace(/:$/, ".") ?? text;
}
