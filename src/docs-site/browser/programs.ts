import { curlCommand } from "../../text/curl.ts";
import { BASE_PATH } from "../../domain/paths.ts";
import { CLIENT_PATH, type ExampleLanguage, type TryItField } from "../page-data.ts";
import { fieldProblem, JSON_NUMBER, listOf, type Members, type RequestInput, requestOf } from "./request.ts";

/** A program that runs as it is, if PETSTORE_KEY in its environment is an API key. */
export interface Example {
  readonly language: ExampleLanguage;
  /** The text of the program, without a newline at its end. */
  readonly code: string;
}

/** Programs have no key: they are copied into files. */
type ProgramInput = Omit<RequestInput, "key">;

/** Programs that send a request: the examples of an operation, and what a form sends. */
export function programsOf(input: ProgramInput): readonly Example[] {
  const { method, url, headers, body, members } = requestOf({ ...input, key: "" });
  const quotedHeaders = headers.map(([name, value]) => [name, quoted(value)] as const);
  const jsHeaders = [["Authorization", "`Bearer ${process.env.PETSTORE_KEY}`"] as const, ...quotedHeaders];
  const pythonHeaders = [
    ["Authorization", `f"Bearer {os.environ['PETSTORE_KEY']}"`] as const,
    // `requests` sets the type of JSON.
    ...quotedHeaders.filter(([name]) => name !== "Content-Type"),
  ];
  // JavaScript would round or rewrite the others.
  const isExact = members.every(([, json]) => json.startsWith('"') || String(Number(json)) === json);
  const jsBody = isExact
    ? `JSON.stringify(${literalOf(members, JS, "  body: JSON.stringify(")})`
    : quoted(body ?? "");
  const json = literalOf(members, JSON_SYNTAX, "  -d '");
  return [
    {
      language: "curl",
      code: curlCommand({
        method,
        url: url.href,
        secret: "$PETSTORE_KEY",
        headers,
        ...(body !== undefined && { body: json }),
      }),
    },
    { language: "typescript", code: typescriptProgram(input) },
    {
      language: "fetch",
      code: lines(
        `const url = ${quoted(url.href)};`,
        "const response = await fetch(url, {",
        method !== "GET" && `  method: "${method}",`,
        `  headers: ${literalOf(jsHeaders, JS, "  headers: ")},`,
        body !== undefined && `  body: ${jsBody},`,
        "  signal: AbortSignal.timeout(15_000),",
        "});",
        "const text = await response.text();",
        "if (response.status >= 400) throw new Error(text);",
        "console.log(response.status, text);",
      ),
    },
    {
      language: "python",
      code: lines(
        "import os",
        "",
        "import requests",
        "",
        `response = requests.${method.toLowerCase()}(`,
        `    ${quoted(url.href)},`,
        `    headers=${literalOf(pythonHeaders, PYTHON, "    headers=")},`,
        body !== undefined && `    json=${literalOf(members, PYTHON, "    json=")},`,
        "    timeout=15,",
        ")",
        "print(response.status_code, response.text)",
        "response.raise_for_status()",
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

function typescriptProgram(input: ProgramInput): string {
  const { baseUrl } = input;
  const { result, call, args } = typescriptCall(input);
  const start = `const ${result} = await petstore.${call}(`;
  const statement = args.reduce((text: string, arg, i) => {
    const before = i === 0 ? text : `${text}, `;
    const line = before.slice(before.lastIndexOf("\n") + 1);
    return before + (typeof arg === "string" ? arg : literalOf(arg, JS, line));
  }, start);
  return `// npm install ${baseUrl.slice(0, -BASE_PATH.length)}${CLIENT_PATH}
import { Petstore } from "@petstore/client";

// The key is in PETSTORE_KEY.
const petstore = new Petstore({
  baseUrl: ${quoted(baseUrl)},
});

${statement});
console.log(${result.replace(/[{} ]/g, "")});`;
}

/** A call of the client library. */
interface Call {
  /** The name of what it returns. */
  readonly result: string;
  readonly call: string;
  /** Expressions, and the members of objects. */
  readonly args: readonly (string | Members)[];
}

/** The call that sends the request: of the method for it, or of `request`, which sends any. */
function typescriptCall(input: ProgramInput): Call {
  const { operation, values } = input;
  const { call, fields } = operation;
  const textOf = ({ name }: TryItField) => values[name] ?? "";
  const given = fields.filter((field) => textOf(field) !== "");
  const membersIn = (location: TryItField["in"]) =>
    given
      .filter((field) => field.in === location)
      .map((field) => [field.name, literal(field, textOf(field))] as const);
  const options = callOptions(membersIn("header"));
  const body = membersIn("body");

  const ids = given.find(({ type }) => type === "integer-list");
  const assumedLimit = fields.find(({ name }) => name === "limit")?.default;
  const others = given.filter((field) => field !== ids && textOf(field) !== assumedLimit);
  // `byIds` takes identifiers alone, and returns more of them than a page has.
  const isByIds =
    others.length === 0 && listOf(ids === undefined ? "" : textOf(ids)).length <= Number(assumedLimit);
  const isRejected = fields.some((field) => fieldProblem(field, textOf(field)) !== undefined);
  const hasFraction = given.some((field) => field.type === "integer" && /\D/.test(textOf(field).slice(1)));
  if (isRejected || hasFraction || (ids !== undefined && !isByIds)) {
    const { method, url, body: sentBody } = requestOf({ ...input, key: "" });
    const path = quoted(url.href.slice(input.baseUrl.length));
    const members = body.length === 0 ? "{}" : literalOf(body, JS, "");
    const sent = sentBody === undefined ? options : [["body", members] as const, ...options];
    return { result: "result", call: "request", args: notEmpty(quoted(method), path, sent) };
  }
  if (ids !== undefined) return { result: "pets", call: "pets.byIds", args: [literal(ids, textOf(ids))] };
  // A value outside of `call` was rejected above.
  const method = typeof call === "string" ? call : (call[values["status"] ?? ""] ?? "");
  if (method.endsWith("listPage"))
    return { result: "{ items }", call: method, args: notEmpty([...membersIn("query"), ...options]) };
  const [, result = ""] = /^(pet|order|key)/.exec(method) ?? [];
  const path = membersIn("path").map(([, text]) => text);
  if (method === call) return { result, call, args: notEmpty(...path, body, options) };
  return { result, call: method, args: notEmpty(...path, callOptions(membersIn("header"), "If-Match")) };
}

/** Arguments without empty objects. */
function notEmpty(...args: Call["args"]): Call["args"] {
  return args.filter(({ length }) => length > 0);
}

/** The headers for which methods have options. */
const HEADER_OPTIONS = { "Idempotency-Key": "idempotencyKey", "If-Match": "ifMatch" } as const;

/** The options of a call that send these headers, of which `named` is one with an option of its own. */
function callOptions(headers: Members, named: keyof typeof HEADER_OPTIONS = "Idempotency-Key"): Members {
  const { [named]: value, ...rest } = Object.fromEntries(headers);
  const others = Object.entries(rest);
  return [
    ...(value === undefined ? [] : [[HEADER_OPTIONS[named], value] as const]),
    ...(others.length === 0 ? [] : [["headers", literalOf(others, JS, "")] as const]),
  ];
}

/** An integer that a number would round is a bigint. */
function literal({ type }: TryItField, text: string): string {
  if (type === "integer-list") return `[${listOf(text).map(integer).join(", ")}]`;
  return type === "string" ? quoted(text) : integer(text);
}

function integer(text: string): string {
  if (!JSON_NUMBER.test(text)) return quoted(text);
  return /^-?\d+$/.test(text) && !Number.isSafeInteger(Number(text)) ? `${text}n` : text;
}
