import { curlCommand } from "../../api/curl.ts";
import type { ExampleLanguage, TryItField, TryItOperation } from "../page-data.ts";
import { type ApiRequest, JSON_NUMBER, type Values } from "./request.ts";

interface ProgramInput {
  readonly request: ApiRequest;
  readonly operation: Pick<TryItOperation, "call" | "fields">;
  readonly values: Values;
  readonly baseUrl: string;
  /** What stands for the API key: people show programs to each other. */
  readonly key: string;
}

/** Programs that send the request of a form. */
export function programsOf(input: ProgramInput): Readonly<Record<ExampleLanguage, string>> {
  const { method, url, headers, body } = input.request;
  const others = headers.filter(([name]) => name !== "Authorization");
  const authorized = [["Authorization", `Bearer ${input.key}`] as const, ...others];
  const lines = (indent: string, shown: typeof authorized) =>
    shown.map(([name, value]) => `${indent}${quoted(name)}: ${quoted(value)},`).join("\n");
  return {
    curl: curlCommand({
      method,
      url: url.href,
      key: input.key,
      headers: others,
      ...(body !== undefined && { body }),
    }),
    typescript: typescriptProgram(input),
    fetch: `const response = await fetch(${quoted(url.href)}, {
  method: "${method}",
  headers: {
${lines("    ", authorized)}
  },${body === undefined ? "" : `\n  body: ${quoted(body)},`}
  signal: AbortSignal.timeout(15_000),
});
console.log(response.status, await response.text());`,
    python: `import requests

response = requests.${method.toLowerCase()}(
    ${quoted(url.href)},
    headers={
${lines(
  "        ",
  authorized.filter(([name]) => name !== "Content-Type"),
)}
    },${body === undefined ? "" : `\n    json=${body},`}
    timeout=15,
)
print(response.status_code, response.text)`,
  };
}

/** A text in JavaScript and in Python, between the quotes that it does not contain. */
function quoted(text: string): string {
  const json = JSON.stringify(text);
  if (!text.includes('"') || text.includes("'")) return json;
  return `'${json.slice(1, -1).replaceAll('\\"', '"')}'`;
}

function typescriptProgram({ operation, values, baseUrl, key }: ProgramInput): string {
  return `import { Petstore } from "@petstore/client";

const petstore = new Petstore({
  key: ${quoted(key)},
  baseUrl: ${quoted(baseUrl)},
});

const result = await petstore.${callOf(operation, values)};
console.log(result);`;
}

/** The call of the client library. It has two methods for what PATCH does, and one for pets by their identifiers. */
function callOf({ call, fields }: ProgramInput["operation"], values: Values): string {
  const given = fields.filter(({ name }) => (values[name] ?? "") !== "");
  const literalOf = (field: TryItField) => literal(field, values[field.name] ?? "");
  const identifiers = given.filter((field) => field.in === "path" || field.type === "int64-list");
  if (identifiers.length > 0) {
    const closing = values["status"] === "cancelled" ? "orders.cancel" : "orders.complete";
    const methods = { "orders.update": closing, "pets.listPage": "pets.byIds" };
    return `${methods[call as keyof typeof methods] ?? call}(${identifiers.map(literalOf).join(", ")})`;
  }
  const members = given.filter(({ in: location }) => location !== "header");
  const idempotencyKey = values["Idempotency-Key"] ?? "";
  return `${call}(${[
    ...objectOf(members.map((field) => `${field.name}: ${literalOf(field)}`)),
    ...objectOf(idempotencyKey === "" ? [] : [`idempotencyKey: ${quoted(idempotencyKey)}`]),
  ].join(", ")})`;
}

function objectOf(members: readonly string[]): readonly string[] {
  if (members.length < 2) return members.map((member) => `{ ${member} }`);
  return [`{\n${members.map((member) => `  ${member},`).join("\n")}\n}`];
}

/** An integer that a number would round is a bigint. */
function literal({ type }: TryItField, text: string): string {
  if (type === "int64-list") return `[${text.split(",").map(integer).join(", ")}]`;
  return type === "string" ? quoted(text) : integer(text);
}

function integer(text: string): string {
  if (!JSON_NUMBER.test(text)) return quoted(text);
  return Number.isSafeInteger(Number(text)) ? text : `${text}n`;
}
