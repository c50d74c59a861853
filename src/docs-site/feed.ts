import type { DocumentedSettings } from "../public/documented-settings.ts";
import { siteUrl } from "../public/site-urls.ts";
import { guidePath, PRODUCT } from "./links.ts";
import { htmlOf } from "./markdown.ts";
import { anchorOf } from "./page-content.ts";
import { FEED_PATH, GUIDE_SOURCES } from "./sources.ts";

const RELEASE = /^## (?<title>(?<version>\S+) \((?<date>[\d-]+)\))\n(?<text>.*?)(?=^## |$(?![\s\S]))/gms;

/** The changelog for clients as Atom (RFC 4287): an entry for each release. */
export function changelogFeed({ baseUrl }: DocumentedSettings): string {
  const path = guidePath("changelog");
  const page = siteUrl(baseUrl, path);
  const releases = Array.from(GUIDE_SOURCES.changelog.matchAll(RELEASE), ({ groups = {} }) => groups);
  const entries = releases.map(({ title = "", version, date, text = "" }) => {
    const url = Bun.escapeHTML(`${page}#${anchorOf(title)}`);
    return `<entry>
<id>${url}</id>
<title>${PRODUCT}, server ${version}</title>
<link href="${url}"/>
<updated>${timeOf(date)}</updated>
<content type="html" xml:base="${Bun.escapeHTML(page)}">${Bun.escapeHTML(htmlOf(text, path))}</content>
</entry>`;
  });
  const own = Bun.escapeHTML(siteUrl(baseUrl, FEED_PATH));
  return `<?xml version="1.0" encoding="utf-8"?>
<feed xmlns="http://www.w3.org/2005/Atom">
<id>${own}</id>
<title>${PRODUCT}: changelog for clients</title>
<link rel="self" href="${own}"/>
<link href="${Bun.escapeHTML(page)}"/>
<author><name>Petstore</name></author>
<updated>${timeOf(releases[0]?.["date"])}</updated>
${entries.join("\n")}
</feed>
`;
}

function timeOf(date = ""): string {
  return `${date}T00:00:00Z`;
}
