import { DOCS_PATH } from "../../domain/constants.ts";
import { baseUrlOf } from "../../petstore/documented-settings.ts";
import { ExampleTabs } from "../markdown/code-blocks.ts";
import { exampleContext } from "../examples/example.ts";
import { examplesOf } from "../examples/examples.ts";
import { GUIDES, operationPath } from "../guides.ts";
import { PRODUCT } from "./layout.ts";
import type { Page } from "./page.ts";
import type { DocsSettings } from "../setting-blocks.ts";
import { relativeUrl } from "../site-path.ts";

const PATH = "/";
const DESCRIPTION = "List pets, add pets, and place, complete or cancel orders, over HTTP with an API key.";

/** What browsers see at `/`. */
export function landingPage(settings: DocsSettings): Page {
  const to = (path: string) => relativeUrl(PATH, path);
  const examples = new ExampleTabs().render(examplesOf("createPet", exampleContext(settings)));
  const html = `<div class="row"><div class="prose">
<h1>${PRODUCT}</h1>
<p class="lead">${DESCRIPTION} Rate limits are exact, integers keep all 64 bits, and a write is on disk before its response is sent.</p>
<p class="actions"><a class="button primary" href="${to(DOCS_PATH)}">Make your first call</a> <a class="button" href="${to(operationPath("listPets"))}">Reference</a></p>
<dl class="facts">
<dt>Base URL</dt><dd><code>${Bun.escapeHTML(baseUrlOf(settings))}</code></dd>
<dt>Environment</dt><dd>${settings.environment}</dd>
<dt>Client library</dt><dd><a href="${to(GUIDES["client-library"])}"><code>@petstore/client</code></a></dd>
<dt>OpenAPI 3.1</dt><dd><a href="${to("/openapi.json")}">JSON</a>, <a href="${to("/openapi.yaml")}">YAML</a></dd>
</dl>
</div><div class="aside">${examples}</div></div>`;
  return { path: PATH, title: PRODUCT, description: DESCRIPTION, html, sections: [] };
}
