import type { Plans } from "../domain/plans.ts";
import { encodeCursor } from "../domain/cursor.ts";
import { longDuration } from "../text/durations.ts";
import { grouped, plural } from "../text/formatting.ts";
import { KEY_PREFIX } from "../domain/secrets.ts";
import { PAGE_LIMIT } from "../domain/size-limits.ts";
import type { BanRules } from "../domain/ban-rules.ts";
import type { Limits } from "../domain/rate-limit.ts";
import { encodePet } from "../domain/pets-and-orders.ts";
import { rex } from "../petstore/openapi/examples.ts";
import { BAN_WARNING } from "../public/errors.ts";
import { deprecationLines } from "../public/deprecation.ts";
import { guideIntroduction } from "../petstore/deprecation.ts";
import { NEW_PET_PATH, OPERATIONS } from "../petstore/operations.ts";
import { exampleContext, inContext } from "./examples.ts";
import { tryItData } from "./fields.ts";
import type { DocumentedSettings } from "../public/documented-settings.ts";
import { guidePath } from "./links.ts";
import { markdownTable } from "./markdown.ts";
import { type DocsPage, PageContent } from "./page-content.ts";
import { addTryIt } from "./reference-pages.ts";
import { GUIDE_SOURCES, type GuideName } from "./sources.ts";

/** A page of docs/ with the blocks of the server. */
export function guidePage(name: GuideName, settingBlocks: Blocks, settings: DocumentedSettings): DocsPage {
  const path = guidePath(name);
  const markdown = guideMarkdown(name, settingBlocks, settings);
  const content = new PageContent(path);
  if (name !== "quickstart") {
    content.markdown(markdown);
    return content.finish();
  }
  // It comes before the first section, so that a newcomer finds it first.
  const firstSection = markdown.indexOf("\n## ");
  content.markdown(markdown.slice(0, firstSection));
  content.markdown("## Your first request\n\nAdd a pet:");
  addTryIt(content, "createPet", settings);
  content.markdown(markdown.slice(firstSection));
  return content.finish({ tryIt: tryItData("createPet", settings) });
}

/** The Markdown of a guide with the addresses, keys and blocks of the server. */
export function guideMarkdown(name: GuideName, settingBlocks: Blocks, settings: DocumentedSettings): string {
  return replaceBlocks(inContext(GUIDE_SOURCES[name], exampleContext(settings)), settingBlocks);
}

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

/** The blocks of the documentation that depend on settings, in Markdown. */
export function settingBlocks(settings: DocumentedSettings): Blocks {
  const { policy, environment, baseUrl: url } = settings;
  const { plans, ban } = policy.current;
  return {
    "quickstart-variables": fenced(
      "sh",
      "# The key is shown once, when it is created.",
      `export PETSTORE_KEY=${KEY_PREFIX[environment]}…`,
      `API=${url}`,
    ),
    "created-pet": fenced("http", ...createdPet(url, plans.free.perMinute)),
    "next-link": fenced("http", nextLink(url)),
    plans: planTable(plans),
    "plans-note": "These are the limits of this server.",
    workers: workerTable(plans),
    "ban-rules": banRules(ban),
    removal: guideIntroduction(OPERATIONS.getPet.path, OPERATIONS.getPet.deprecated, settings),
    "deprecation-headers": fenced("http", deprecationHeaders(url)),
    environments: environmentTable(settings),
    "connection-limit": connectionLimit(settings.maxConnectionsPerAddress),
  };
}

function fenced(language: string, ...lines: readonly string[]): string {
  return ["```" + language, ...lines, "```"].join("\n");
}

function createdPet(url: string, limit: number): string[] {
  return [
    "HTTP/1.1 201 Created",
    "Content-Type: application/json",
    `Location: ${url}${NEW_PET_PATH}${rex.id}`,
    `X-RateLimit-Limit: ${limit}`,
    "X-RateLimit-Reset: 1794733260",
    `X-RateLimit-Remaining: ${limit - 1}`,
    "",
    encodePet(rex),
  ];
}

function nextLink(url: string): string {
  const { default: limit } = PAGE_LIMIT;
  return `Link: <${url}/pets?limit=${limit}&cursor=${encodeCursor("pets", BigInt(limit))}>; rel="next"`;
}

function planTable({ free, pro, business, anonymous }: Plans): string {
  return [
    "| Plan | Requests per minute | Requests per day |",
    "| --- | ---: | ---: |",
    planRow("Free", free),
    planRow("Pro", pro),
    planRow("Business", business),
    "| Enterprise | custom | custom |",
    planRow("No valid key", anonymous),
  ].join("\n");
}

function planRow(name: string, { perMinute, perDay }: Limits): string {
  return `| ${name} | ${grouped(perMinute)} | ${grouped(perDay)} |`;
}

const MINUTES_PER_DAY = 1_440;

/** How many workers with the same habit a plan carries. */
function workerTable({ free, pro, business }: Plans): string {
  const rowOf = (name: string, { perMinute, perDay }: Limits) => {
    const everySecond = Math.floor(perMinute / 60);
    const everyTenMinutes = Math.floor(Math.min(perMinute * 10, (perDay / MINUTES_PER_DAY) * 10));
    return [name, grouped(everySecond), grouped(everyTenMinutes)];
  };
  return markdownTable(
    [
      "Plan",
      "Workers that send a request a second, for a while",
      "Workers that send a request every ten minutes, all day",
    ],
    [rowOf("Free", free), rowOf("Pro", pro), rowOf("Business", business)],
  );
}

function banRules({ strikes, graceMs, lengthMs, maxLengthMs }: BanRules): string {
  const grace = `- Requests rejected within ${longDuration(graceMs)} of the first 429 have no consequence; they may have been sent before it arrived.
- A request rejected later is a strike, and the next strike comes more than ${longDuration(graceMs)} after it.`;
  const rules = `${graceMs > 0 ? grace : "- Every request that is rejected after the first 429 is a strike."} Strikes expire when the exhausted window closes.
- From the first strike on, a 429 says: "${BAN_WARNING}"
- ${plural(strikes, "strike")} ${strikes === 1 ? "bans" : "ban"} the key for ${longDuration(lengthMs)}. The last of them already gets \`key_banned\`.`;
  if (maxLengthMs === lengthMs) return rules;
  return `${rules}\n- A ban within 24 hours of the end of the last one is twice as long as that one, at most ${longDuration(maxLengthMs)}.`;
}

/** One link to a line. */
function deprecationHeaders(url: string): string {
  const lines = deprecationLines(OPERATIONS.getPet.deprecated, url)("7");
  return lines.trimEnd().replaceAll("\r\n", "\n").replaceAll(", <", ",\n      <");
}

function connectionLimit(maximum: number): string {
  if (maximum === 0) return "The number of connections from one IP address is not limited.";
  return `An IP address (for IPv6, a /64 network) can have ${plural(maximum, "open connection")}. A further one gets 503 \`unavailable\` or, with TLS or when there are many, is reset (\`ECONNRESET\`).`;
}

function environmentTable({ environment, baseUrl, otherEnvironmentUrl }: DocumentedSettings): string {
  const rowOf = (title: string, name: DocumentedSettings["environment"]) => {
    const url = name === environment ? baseUrl : otherEnvironmentUrl;
    return [title, url === undefined ? "ask the operator" : `\`${url}\``, `\`${KEY_PREFIX[name]}\``];
  };
  const rows = [rowOf("Production", "production"), rowOf("Staging", "staging")];
  return markdownTable(["Environment", "Base URL", "Keys begin with"], rows);
}
