import { KEY_PREFIX, PAGE_LIMIT } from "../domain/constants.ts";
import { encodeCursor } from "../api/cursor.ts";
import { baseUrlOf, type DocumentedSettings } from "../petstore/documented-settings.ts";
import { duration, plural } from "../api/formatting.ts";
import { planTable } from "../petstore/openapi/description.ts";
import { OPERATIONS } from "../petstore/operations.ts";
import { deprecationHeaders } from "../petstore/deprecation-headers.ts";
import { exampleContext } from "./examples/example.ts";
import { exampleBlocks } from "./examples/markdown.ts";

/** Markdown by the name of the block. */
export type Blocks = Readonly<Record<string, string>>;

const BLOCK = /<!-- ([a-z-]+) -->\n[\s\S]*?<!-- \/\1 -->/g;

/** Replaces each text between `<!-- name -->` and `<!-- /name -->` with the block of that name, if there is one. */
export function replaceBlocks(text: string, blocks: Blocks): string {
  return text.replace(BLOCK, (block, name: string) => {
    const content = blocks[name];
    return content === undefined ? block : `<!-- ${name} -->\n\n${content}\n\n<!-- /${name} -->`;
  });
}

export interface DocsSettings extends DocumentedSettings {
  /** 0 means any number. */
  readonly maxConnectionsPerAddress: number;
  /** The base URL of the other environment, if the operator has told it. */
  readonly otherUrl?: string | undefined;
}

/** The blocks of the documentation that depend on settings, in Markdown. */
export function settingBlocks(settings: DocsSettings): Blocks {
  const { plans, ban, environment } = settings;
  const url = baseUrlOf(settings);
  return {
    ...exampleBlocks(exampleContext(settings)),
    "quickstart-variables": codeBlock(
      "sh",
      "# The key is printed once, when it is created.",
      `API=${url}`,
      `KEY=${KEY_PREFIX[environment]}…`,
    ),
    "created-pet": codeBlock("http", ...createdPet(url, plans.free.perMinute)),
    "next-link": codeBlock("http", nextLink(url)),
    plans: planTable(plans),
    "ban-rules": banRules(ban),
    "deprecation-headers": codeBlock("http", ...deprecationLines(url)),
    environments: environmentTable(settings),
    "connection-limit": connectionLimit(settings.maxConnectionsPerAddress),
  };
}

function codeBlock(language: string, ...lines: readonly string[]): string {
  return ["```" + language, ...lines, "```"].join("\n");
}

function createdPet(url: string, limit: number): string[] {
  return [
    "HTTP/1.1 201 Created",
    "Content-Type: application/json",
    `Location: ${url}/pets/1`,
    `X-RateLimit-Limit: ${limit}`,
    "X-RateLimit-Reset: 1794733260",
    `X-RateLimit-Remaining: ${limit - 1}`,
    "",
    '{"id":1,"name":"Rex","categoryId":7,"status":"available"}',
  ];
}

function nextLink(url: string): string {
  const { default: limit } = PAGE_LIMIT;
  return `Link: <${url}/pets?limit=${limit}&cursor=${encodeCursor("pets", BigInt(limit))}>; rel="next"`;
}

function banRules({ strikes, graceMs, lengthMs, maxLengthMs }: DocumentedSettings["ban"]): string {
  const rules = `- Requests rejected within ${duration(graceMs)} of the first 429 have no consequence; they may have been sent before it arrived.
- Every later rejected request is a strike. Strikes expire when the exhausted window closes.
- ${strikes} strikes ban the key for ${duration(lengthMs)}. The last of them already gets \`key_banned\`.`;
  if (maxLengthMs === lengthMs) return rules;
  return `${rules}\n- A ban within 24 hours of the end of the last one is twice as long as that one, at most ${duration(maxLengthMs)}.`;
}

function deprecationLines(url: string): string[] {
  const headers = Object.entries(deprecationHeaders(OPERATIONS.getPet.deprecated, url));
  return headers.map(
    ([name, value]) => `${name}: ${value.replace("{petId}", "7").replace(", <", ",\n      <")}`,
  );
}

function connectionLimit(maximum: number): string {
  if (maximum === 0) return "The number of connections from one IP address is not limited.";
  return `An IP address (IPv6: a /64 network) can have ${plural(maximum, "connection")}; the server closes further ones.`;
}

function environmentTable({ servers, environment, otherUrl }: DocsSettings): string {
  const urlOf = (name: DocsSettings["environment"]) =>
    name === environment || otherUrl !== undefined ? `\`${servers[name]}\`` : "ask the operator";
  return [
    "| Environment | Base URL | Keys begin with |",
    "| --- | --- | --- |",
    `| Production | ${urlOf("production")} | \`${KEY_PREFIX.production}\` |`,
    `| Staging | ${urlOf("staging")} | \`${KEY_PREFIX.staging}\` |`,
  ].join("\n");
}
