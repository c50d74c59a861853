import { EXAMPLE_LANGUAGES, type Example, type ExampleContext, render } from "./example.ts";
import { GUIDE_EXAMPLES } from "./guides/guides.ts";

/**
 * One code block after the other. The info string of each has the name of its language, such as
 * ```` ```js example=fetch ````, so that a page can show consecutive ones as tabs.
 */
export function examplesMarkdown(examples: readonly Example[]): string {
  return examples.map(codeBlock).join("\n\n");
}

function codeBlock({ language, code }: Example): string {
  return `\`\`\`${EXAMPLE_LANGUAGES[language].syntax} example=${language}\n${code}\n\`\`\``;
}

/**
 * The examples of the guides by the name of their block: the pages of docs/ have them between
 * `<!-- example-pagination -->` and `<!-- /example-pagination -->`. `client-setup` is the first example of the guide to
 * the client library, which is about TypeScript alone.
 */
export function exampleBlocks(context: ExampleContext): Readonly<Record<string, string>> {
  const blocks = Object.entries(GUIDE_EXAMPLES).map(([name, templates]) => [
    `example-${name}`,
    examplesMarkdown(render(templates, context)),
  ]);
  return { ...Object.fromEntries(blocks), "client-setup": clientSetup(context) };
}

/** The examples that follow it use the three variables. */
function clientSetup({ baseUrl, key }: ExampleContext): string {
  return `\`\`\`ts
import { Petstore } from "@petstore/client";

const key = "${key}";
const baseUrl = "${baseUrl}";
const petstore = new Petstore({ key, baseUrl });
\`\`\``;
}
