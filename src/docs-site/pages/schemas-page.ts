import { SCHEMAS } from "../../petstore/openapi/document.ts";
import type { JsonSchema } from "../../api/schema.ts";
import { SCHEMAS_PATH } from "../guides.ts";
import { linksOn } from "../links.ts";
import { inlineHtml } from "../markdown/blocks.ts";
import type { Page } from "./page.ts";
import { PageContent } from "./page-content.ts";
import { fieldsOf, fieldTable } from "./schema-fields.ts";

/** The schemas of request bodies. */
const REQUESTS: ReadonlySet<string> = new Set(["NewPet", "NewOrder", "OrderUpdate"]);

/** Every schema of the OpenAPI document, with its fields. */
export function schemasPage(): Page {
  const content = new PageContent();
  content.heading({ level: 1, id: "schemas", html: "Schemas" });
  content.prose(
    "<p>What requests and responses contain. Unknown fields of a request are ignored; new fields may appear in responses.</p>",
  );
  for (const [name, schema] of Object.entries(SCHEMAS)) addSchema(content, name, schema);
  return {
    path: SCHEMAS_PATH,
    title: "Schemas",
    description: "The fields of every object that requests and responses contain.",
    ...content.finish(),
  };
}

function addSchema(content: PageContent, name: string, schema: unknown): void {
  if (typeof schema !== "object" || schema === null) return;
  const { description, items, enum: values }: JsonSchema = { ...schema };
  const links = linksOn(SCHEMAS_PATH);
  content.heading({ level: 2, id: name.toLowerCase(), html: name });
  content.prose(`<p>${inlineHtml(String(description ?? ""), links)}</p>`);
  const rows = fieldsOf({ ...schema }).map((field) => ({ field, anchor: `${name}-${field.name}` }));
  if (rows.length > 0)
    content.prose(fieldTable(rows, { links, mark: REQUESTS.has(name) ? "required" : "optional" }));
  if (Array.isArray(values)) content.prose(`<p>One of ${values.map(code).join(", ")}.</p>`);
  if (items !== undefined) {
    const item = name.replace(/s$/, "");
    content.prose(`<p>An array of <a href="#${item.toLowerCase()}">${item}</a> objects.</p>`);
  }
}

function code(value: unknown): string {
  return `<code>${Bun.escapeHTML(String(value))}</code>`;
}
