import { describe, expect, test } from "bun:test";
import { highlight } from "../../src/docs-site/highlight.ts";
import { blocksOf, framedTable, htmlOf, textOf } from "../../src/docs-site/markdown.ts";
import { relativeUrl } from "../../src/docs-site/links.ts";

const FENCE = "```";

describe("blocks", () => {
  test("a page is headings, prose, tables, figures and code", () => {
    const text = `# Title\n\nOne\ntwo\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n${FENCE}sh\ncurl\n\n# no heading\n${FENCE}\n\n![Alt](f.svg)\n\n- x\n- y\n`;
    expect(blocksOf(text)).toEqual([
      { kind: "heading", level: 1, markdown: "Title" },
      { kind: "prose", markdown: "One\ntwo" },
      { kind: "table", markdown: "| a | b |\n|---|---|\n| 1 | 2 |" },
      { kind: "code", syntax: "sh", code: "curl\n\n# no heading" },
      { kind: "figure", alt: "Alt", file: "f.svg" },
      { kind: "prose", markdown: "- x\n- y" },
    ]);
  });

  test("consecutive examples become one block", () => {
    const fence = (language: string) => `${FENCE}x example=${language}\n${language}\n${FENCE}\n`;
    expect(blocksOf(`${fence("curl")}\n${fence("python")}\nText`)).toEqual([
      {
        kind: "examples",
        examples: [
          { language: "curl", code: "curl" },
          { language: "python", code: "python" },
        ],
      },
      { kind: "prose", markdown: "Text" },
    ]);
  });

  test("marks of generated blocks are left out", () => {
    expect(blocksOf("<!-- plans -->\n\nText\n\n<!-- /plans -->")).toEqual([
      { kind: "prose", markdown: "Text" },
    ]);
  });
});

describe("HTML", () => {
  test("HTML in Markdown stays text", () => {
    const html = htmlOf("<script>alert(1)</script>\n\na <b>c</b>", () => undefined);
    expect(html).not.toContain("<script");
    expect(html).not.toContain("<b>");
    expect(textOf(html)).toBe("<script>alert(1)</script> a <b>c</b>");
  });

  test("a link to a page that the site does not have becomes text", () => {
    const html = htmlOf("[a](a.md) and [b](b.md)", (href) => (href === "a.md" ? "to-a" : undefined));
    expect(html).toBe('<p><a href="to-a">a</a> and b</p>\n');
  });

  test("each cell of a table has the heading of its column, and more than three columns are wide", () => {
    const table = (columns: number) => {
      const row = (text: string) => `|${` ${text} |`.repeat(columns)}`;
      return framedTable(htmlOf([row("h"), row("---"), row("c")].join("\n"), () => undefined));
    };
    expect(table(2).html).toContain('<td data-label="h"><span>c</span></td>');
    expect([table(3).isWide, table(4).isWide]).toEqual([false, true]);
  });
});

test.each([
  ["/docs", "/docs/errors", "docs/errors"],
  ["/docs/errors", "/docs", "../docs"],
  ["/docs/errors", "/docs/integers#x", "integers#x"],
  ["/docs/reference/getPet", "/docs/errors", "../errors"],
  ["/docs/reference/getPet", "/", "../../"],
  ["/", "/docs", "docs"],
  ["/docs", "/", "./"],
])("relativeUrl from %s to %s is %s", (from, to, url) => {
  expect(relativeUrl(from, to)).toBe(url);
  expect(new URL(url, `http://petstore.test${from}`).href).toBe(`http://petstore.test${to}`);
});

describe("highlighting", () => {
  const plain = (html: string) => html.replace(/<[^>]+>/g, "");

  test.each([
    ["json", '{"id": 9007199254740993, "ok": true}', ["property", "number", "property", "keyword"]],
    ["sh", 'curl "$API" -H x # note', ["keyword", "string", "property", "comment"]],
    ["ts", 'const a = "b"; // 1', ["keyword", "string", "comment"]],
    ["python", 'for x in y: print(f"{x}")', ["keyword", "keyword", "string"]],
    ["http", "HTTP/1.1 200 OK\nETag: a\n", ["keyword", "property"]],
    ["unknown", "const a = 1", []],
  ])("%s", (syntax, code, kinds) => {
    const html = highlight(code, syntax);
    expect([...html.matchAll(/class="token-(\w+)"/g)].map(([, kind]) => kind)).toEqual(kinds);
    expect(plain(html)).toBe(code);
  });

  test("text is escaped", () => {
    expect(highlight('<b> "&"', "json")).toBe('&lt;b&gt; <span class="token-string">"&amp;"</span>');
  });
});
