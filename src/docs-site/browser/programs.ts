import { curlCommand } from "../../text/curl.ts";
import { BASE_PATH } from "../../domain/constants.ts";
import { CLIENT_PATH, type ExampleLanguage, type TryItField } from "../page-data.ts";
import { JSON_NUMBER, type Members, type RequestInput, requestOf } from "./request.ts";

/** A program that runs as it is, once `key` is an API key. */
export interface Example {
  readonly language: ExampleLanguage;
  /** The text of the program, without a newline at its end. */
  readonly code: string;
}

/** Programs that send a request: the examples of an operation, and what a form sends. */
export function programsOf(input: RequestInput): readonly Example[] {
  const { method, url, headers, body, members } = requestOf(input);
  const quotedHeaders = headers.map(([name, value]) => [name, quoted(value)] as const);
  // `requests` sets the type of JSON.
  const pythonHeaders = quotedHeaders.filter(([name]) => name !== "Content-Type");
  // JavaScript would round or rewrite the others.
  const isExact = members.every(([, json]) => json.startsWith('"') || String(Number(json)) === json);
  const jsBody = isExact
    ? `JSON.stringify(${literalOf(members, JS, "  body: JSON.stringify(")})`
    : quoted(body ?? "");
  const json = literalOf(members, JSON_SYNTAX, "  -d '");
  return [
    {
      language: "curl",
      code: curlCommand({ method, url: url.href, headers, ...(body !== undefined && { body: json }) }),
    },
    { language: "typescript", code: typescriptProgram(input) },
    {
      language: "fetch",
      code: lines(
        `const url = ${quoted(url.href)};`,
        "const response = await fetch(url, {",
        method !== "GET" && `  method: "${method}",`,
        `  headers: ${literalOf(quotedHeaders, JS, "  headers: ")},`,
        body !== undefined && `  body: ${jsBody},`,
        "  signal: AbortSignal.timeout(15_000),",
        "});",
        "console.log(response.status, await response.text());",
      ),
    },
    {
      language: "python",
      code: lines(
        "import requests",
        "",
        `response = requests.${method.toLowerCase()}(`,
        `    ${quoted(url.href)},`,
        `    headers=${literalOf(pythonHeaders, PYTHON, "    headers=")},`,
        body !== undefined && `    json=${literalOf(members, PYTHON, "    json=")},`,
        "    timeout=15,",
        ")",
        "print(response.status_code, response.text)",
      ),
    },
  ];
}

function lines(...all: readonly (string | false)[]): string {
  return all.filter((line) => line !== false).join("\n");
}

/** How a language writes an object. */
interface Syntax {
  readonly nameOf: (name: string) => string;
  readonly padding: string;
  readonly lastComma: string;
  readonly step: number;
}

const JSON_SYNTAX: Syntax = { nameOf: (name) => JSON.stringify(name), padding: "", lastComma: "", step: 2 };
const PYTHON: Syntax = { ...JSON_SYNTAX, lastComma: ",", step: 4 };
const JS: Syntax = {
  nameOf: (name) => (/^\w+$/.test(name) ? name : quoted(name)),
  padding: " ",
  lastComma: ",",
  step: 2,
};

/** Programs are shown in a narrow column. */
const MAX_COLUMNS = 72;

/** An object literal, on one line if it fits after `start`, which is the line so far. */
function literalOf(members: Members, { nameOf, padding, lastComma, step }: Syntax, start: string): string {
  const entries = members.map(([name, value]) => `${nameOf(name)}: ${value}`);
  const line = `{${padding}${entries.join(", ")}${padding}}`;
  if (start.length + line.length < MAX_COLUMNS) return line;
  const indent = start.length - start.trimStart().length;
  const inner = entries.map((entry) => `\n${" ".repeat(indent + step)}${entry}`);
  return `{${inner.join(",")}${lastComma}\n${" ".repeat(indent)}}`;
}

/** A text in JavaScript and in Python, between the quotes that it does not contain. */
function quoted(text: string): string {
  const json = JSON.stringify(text);
  if (!text.includes('"') || text.includes("'")) return json;
  return `'${json.slice(1, -1).replaceAll('\\"', '"')}'`;
}

function typescriptProgram(input: RequestInput): string {
  const { baseUrl, key } = input;
  const call = callOf(input);
  const [, noun = ""] = /^(pet|order|key)/.exec(call) ?? [];
  const [result, shown] = /listPage/.test(call) ? ["{ items }", "items"] : [noun, noun];
  return `// npm install ${baseUrl.slice(0, -BASE_PATH.length)}${CLIENT_PATH}
import { Petstore } from "@petstore/client";

const petstore = new Petstore({
  key: ${quoted(key)},
  baseUrl: ${quoted(baseUrl)},
});

const ${result} = await petstore.${call};
console.log(${shown});`;
}

/** The call of the client library. It has two methods for what PATCH does, and one for pets by their identifiers. */
function callOf({ operation: { call, fields }, values }: RequestInput): string {
  const given = fields.filter(({ name }) => (values[name] ?? "") !== "");
  const literalOfField = (field: TryItField) => literal(field, values[field.name] ?? "");
  const identifiers = given.filter((field) => field.in === "path" || field.type === "integer-list");
  if (identifiers.length > 0) {
    const closing = values["status"] === "cancelled" ? "orders.cancel" : "orders.complete";
    const methods = { "orders.update": closing, "pets.listPage": "pets.byIds" };
    return `${methods[call as keyof typeof methods] ?? call}(${identifiers.map(literalOfField).join(", ")})`;
  }
  const members = given.filter(({ in: location }) => location !== "header");
  const idempotencyKey = values["Idempotency-Key"] ?? "";
  const start = `const { items } = await petstore.${call}(`;
  const body = members.map((field) => [field.name, literalOfField(field)] as const);
  const written = [
    ...(body.length === 0 ? [] : [literalOf(body, JS, start)]),
    ...(idempotencyKey === "" ? [] : [`{ idempotencyKey: ${quoted(idempotencyKey)} }`]),
  ];
  return `${call}(${written.join(", ")})`;
}

/** An integer that a number would round is a bigint. */
function literal({ type }: TryItField, text: string): string {
  if (type === "integer-list") return `[${text.split(",").map(integer).join(", ")}]`;
  return type === "string" ? quoted(text) : integer(text);
}

function integer(text: string): string {
  if (!JSON_NUMBER.test(text)) return quoted(text);
  return Number.isSafeInteger(Number(text)) ? text : `${text}n`;
}
