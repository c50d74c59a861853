import { describe, expect, test } from "bun:test";
import { highlight } from "../../src/docs-site/highlight.ts";
import { htmlOf, textOf } from "../../src/docs-site/markdown.ts";
import { relativeUrl, withGuideLinks } from "../../src/docs-site/links.ts";
import { PageContent } from "../../src/docs-site/page-content.ts";

const FENCE = "```";

/** The HTML of a page of this Markdown. */
function pageOf(markdown: string): string {
  const content = new PageContent("/docs/errors");
  content.markdown(markdown);
  return content.finish().html;
}

describe("a page", () => {
  test("is headings, prose, tables, figures and code", () => {
    const html = pageOf(
      `# Title\n\nOne\ntwo\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n${FENCE}sh\ncurl\n\n# no heading\n${FENCE}\n\n![Alt](f.svg)\n\n- x\n- y\n`,
    );
    const shape = [...html.matchAll(/<(h1|p|table|pre|figure|ul)\b/g)].map(([, name]) => name);
    expect(shape).toEqual(["h1", "p", "table", "pre", "figure", "ul"]);
    expect(textOf(html)).toContain("curl # no heading");
  });

  test("has prose beside the code that belongs to it, and what is wide in rows of its own", () => {
    const [narrow, wide, data] = ["x".repeat(72), "x".repeat(73), `"${"x".repeat(80)}"`];
    const block = (syntax: string, code: string) => `${FENCE}${syntax}\n${code}\n${FENCE}`;
    const content = new PageContent("/docs/errors");
    content.markdown(
      [
        "# A `title`",
        "One: two.",
        "### Below\nText",
        "## A section\nText",
        block("json", "{}"),
        "### After code\nMore",
        block("sh", narrow),
        block("sh", wide),
        block("json", data),
      ].join("\n\n"),
    );
    const { html, ...page } = content.finish();
    const link = (id: string, title: string) => `<a class="heading-link" href="#${id}">${title}</a>`;
    const code = (title: string, syntax: string, inner: string) =>
      `<div class="code"><div class="code-title">${title}</div><pre tabindex="0" data-syntax="${syntax}"><code>${inner}</code></pre></div>`;
    const row = (shape: string, prose: string, aside?: string) =>
      `<div class="row${shape}"><div class="prose">${prose}</div>${aside === undefined ? "" : `<div class="aside">${aside}</div>`}</div>`;
    expect(html.replaceAll("</p>\n", "</p>").split("\n")).toEqual([
      row(
        " without-code",
        `<h1 id="a-title">A <code>title</code></h1><p>One: two.</p><h3 id="below">${link("below", "Below")}</h3><p>Text</p>`,
      ),
      row(
        " begins-section",
        `<h2 id="a-section">${link("a-section", "A section")}</h2><p>Text</p>`,
        code("JSON", "json", "{}"),
      ),
      row(
        "",
        `<h3 id="after-code">${link("after-code", "After code")}</h3><p>More</p>`,
        code("Shell", "sh", narrow),
      ),
      `<div>${code("Shell", "sh", wide)}</div>`,
      row("", "", code("JSON", "json", `<span class="token-string">${data}</span>`)),
    ]);
    expect(page).toEqual({
      path: "/docs/errors",
      title: "A title",
      description: "One.",
      sections: [
        { id: "", title: "A title", level: 1, text: "One: two." },
        { id: "below", title: "Below", level: 3, text: "Text" },
        { id: "a-section", title: "A section", level: 2, text: "Text" },
        { id: "after-code", title: "After code", level: 3, text: `More Shell ${wide}` },
      ],
      isProse: false,
    });
    expect(new PageContent("/docs/x").finish()).toMatchObject({ title: "Petstore API", isProse: true });
  });

  test("a row with a form says so, because its code comes first on a narrow screen; the next row does not", () => {
    const content = new PageContent("/docs/errors");
    content.form("<form></form>", "");
    content.code("<pre></pre>");
    content.prose("<p></p>");
    const shapes = [...content.finish().html.matchAll(/<div class="(row[^"]*)"/g)].map(([, shape]) => shape);
    expect(shapes.map((shape) => shape?.includes("with-form"))).toEqual([true, false]);
  });

  test("a paragraph in italics after a figure is its caption", () => {
    const html = pageOf("![Alt](f.svg)\n\n_A caption of\n`two_lines`._\n\n_Text_");
    expect(html).toContain(
      '<figcaption class="note">A caption of\n<code>two_lines</code>.</figcaption></figure>',
    );
    expect(html).toContain("<p><em>Text</em></p>");
  });

  test("consecutive examples become one block, and marks of generated blocks are left out", () => {
    const fence = (language: string) => `${FENCE}x example=${language}\n${language}\n${FENCE}\n`;
    const html = pageOf(`<!-- mark -->\n\n${fence("curl")}\n${fence("python")}\n<!-- /mark -->\n\nText`);
    expect(html.match(/<fieldset/g)).toHaveLength(1);
    expect(html.match(/<input[^>]*>/g)).toEqual([
      '<input type="radio" name="language-1" value="curl" checked>',
      '<input type="radio" name="language-1" value="python">',
    ]);
    expect([...html.matchAll(/data-language="(\w+)"/g)].map(([, name]) => name)).toEqual(["curl", "python"]);
    expect(html).not.toContain("mark");
  });

  test("HTML in Markdown stays text", () => {
    const html = pageOf("<script>alert(1)</script>\n\na <b>c</b>");
    expect(html).not.toContain("<script");
    expect(html).not.toContain("<b>");
    expect(textOf(html)).toBe("<script>alert(1)</script> a <b>c</b>");
  });

  test("a link to a page that the site does not have becomes text", () => {
    const html = pageOf("[a](integers.md) and [b](b.md)");
    expect(html).toContain('<p><a href="integers">a</a> and b</p>');
  });

  test("a table keeps its columns on a phone if they fit, or if sentences are in the last one only", () => {
    const isTable = (...cells: string[]) => {
      const row = `| ${cells.join(" | ")} |`;
      const html = htmlOf([row, `|${cells.map(() => "---").join("|")}|`, row].join("\n"), "/docs/x");
      return html.includes("<table>");
    };
    expect(isTable("Free", "60", "1,000")).toBe(true);
    expect(isTable("429", "A rate limit is exhausted. `Retry-After` has the seconds to wait.")).toBe(true);
    expect(isTable("A field with a long name", "A rate limit is exhausted.")).toBe(false);
    expect([36, 37].map((width) => isTable("x".repeat(width - 13), "x".repeat(13)))).toEqual([true, false]);
    expect([12, 13].map((width) => isTable("x".repeat(width), "x".repeat(50)))).toEqual([true, false]);
  });

  test("a quotation is a warning, or says that something is deprecated", () => {
    expect(htmlOf("> Never do this.", "/docs/x")).toStartWith(
      '<blockquote class="callout" data-meaning="limited">',
    );
    expect(htmlOf("> **Deprecated** now.", "/docs/x")).toContain('data-meaning="deprecated"');
  });

  test("more than three columns are wide, and from the third on a cell that is no sentence has its heading", () => {
    const table = (...cells: string[]) => {
      const row = (text: string) => `|${` ${text} |`.repeat(cells.length)}`;
      return pageOf([row("h"), row("---"), `| ${cells.join(" | ")} |`].join("\n"));
    };
    expect(table("a", "b", "c")).toContain('<td>a</td><td>b</td><td data-label="h">c</td>');
    expect(table("a", "b", "A sentence.")).toContain("<td>A sentence.</td>");
    const isProse = (columns: number) => table(..."abcd".slice(0, columns)).includes('class="prose"');
    expect([3, 4].map(isProse)).toEqual([true, false]);
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

test("in Markdown, links to guides and elsewhere stay, and those to other files become text", () => {
  expect(
    withGuideLinks("[a](errors.md#b) [c](docs/api.md) [d](#e) [f](https://g.test/) [h](/i) [j](k.md)"),
  ).toBe("[a](errors.md#b) [c](api.md) [d](#e) [f](https://g.test/) [h](/i) j");
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
