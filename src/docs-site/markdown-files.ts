import { LLMS_PATH } from "../domain/paths.ts";
import type { DocumentedSettings } from "../public/documented-settings.ts";
import { siteUrl } from "../public/site-urls.ts";
import { guideMarkdown, type Blocks } from "./guide-pages.ts";
import { markdownPath, PRODUCT, withGuideLinks } from "./links.ts";
import { type DocsPage, withoutMarks } from "./page-content.ts";
import { GUIDE_SOURCES, type GuideName } from "./sources.ts";

/** The guides as Markdown, by path, and the list of them. `guides` are their pages. */
export function markdownFiles(
  guides: readonly DocsPage[],
  blocks: Blocks,
  settings: DocumentedSettings,
): ReadonlyMap<string, string> {
  const names = Object.keys(GUIDE_SOURCES) as GuideName[];
  const files = names.map((name) => {
    const text = withoutMarks(guideMarkdown(name, blocks, settings));
    return [markdownPath(name), withGuideLinks(text)] as const;
  });
  const entries = names.map((name, i) => {
    const { title = name, description = "" } = guides[i] ?? {};
    return `- [${title}](${siteUrl(settings.baseUrl, markdownPath(name))}): ${description}`;
  });
  const llms = `# ${PRODUCT}

> A pet store over HTTP: with an API key you list pets, add pets, and place, complete or cancel orders.

The base URL is ${settings.baseUrl}. Every request needs \`Authorization: Bearer\` and an API key.

## Guides

${entries.join("\n")}

## Reference

- [OpenAPI 3.1](${siteUrl(settings.baseUrl, "/openapi.json")}): every operation, parameter, response and error
`;
  return new Map([...files, [LLMS_PATH, llms]]);
}
