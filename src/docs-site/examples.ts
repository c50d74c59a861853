import { curlCommand } from "../api/curl.ts";
import { toJson } from "../api/json.ts";
import { KEY_PREFIX } from "../domain/constants.ts";
import type { OperationId } from "../domain/usage-history.ts";
import { type DocumentedSettings, siteUrl } from "../petstore/documented-settings.ts";
import { EXAMPLES } from "../petstore/openapi/examples.ts";
import { OPERATIONS, type PetstoreOperation } from "../petstore/operations.ts";
import { CLIENT_PACKAGE_PATH } from "../petstore/static-routes.ts";
import type { ExampleLanguage } from "./page-data.ts";

/** A program that runs as it is, once `key` is an API key. */
export interface Example {
  readonly language: ExampleLanguage;
  /** Without a newline at its end. */
  readonly code: string;
}

/** What the examples take from the configuration of a server. */
export interface ExampleContext {
  /** With the base path and without a slash at its end: `http://127.0.0.1:8080/v1`. */
  readonly baseUrl: string;
  readonly key: string;
}

/** The address of the server and a placeholder that says where the API key belongs. */
export function exampleContext({ baseUrl, environment }: DocumentedSettings): ExampleContext {
  return { baseUrl, key: `${KEY_PREFIX[environment]}YOUR_KEY` };
}

/** What the examples in the Markdown of the guides contain. */
const MARKDOWN_CONTEXT: ExampleContext = {
  baseUrl: "http://127.0.0.1:8080/v1",
  key: `${KEY_PREFIX.production}YOUR_KEY`,
};

const EXAMPLE_BLOCK = /<!-- (example-[a-z-]+|client-setup) -->\n[\s\S]*?<!-- \/\1 -->/g;

/**
 * The Markdown of a guide with the address and the key of `context` in its examples. Those are between
 * `<!-- example-pagination -->` and `<!-- /example-pagination -->`, one code block for each language. `client-setup` is
 * the first example of the guide to the client library, which is about TypeScript alone.
 */
export function withExampleContext(markdown: string, { baseUrl, key }: ExampleContext): string {
  return markdown.replace(EXAMPLE_BLOCK, (block) => inContext(block, { baseUrl, key }));
}

export function inContext(text: string, { baseUrl, key }: ExampleContext): string {
  const replacements = [
    [MARKDOWN_CONTEXT.baseUrl, baseUrl],
    [siteUrl(MARKDOWN_CONTEXT.baseUrl, CLIENT_PACKAGE_PATH), siteUrl(baseUrl, CLIENT_PACKAGE_PATH)],
    [MARKDOWN_CONTEXT.key, key],
  ] as const;
  return replacements.reduce((result, [from, to]) => result.replaceAll(from, () => to), text);
}

/** The examples of an operation: one per language, in the order of EXAMPLE_LANGUAGES. */
export function examplesOf(operationId: OperationId, context: ExampleContext): readonly Example[] {
  const request = requestOf(operationId);
  return [
    { language: "curl", code: curlProgram(request, context) },
    { language: "typescript", code: typescriptProgram(CALLS[operationId], context) },
    { language: "fetch", code: fetchProgram(request, context) },
    { language: "python", code: pythonProgram(request, context) },
  ];
}

/** A request that an example sends. */
interface ExampleRequest {
  readonly method: PetstoreOperation["method"];
  /** Relative to the base URL, with the query string. */
  readonly path: string;
  readonly body?: Fields;
}

/** The fields of a body: name → JSON of the value. */
type Fields = Readonly<Record<string, string>>;

/** Examples are shown in a narrow column. */
const MAX_FIELDS_ON_A_LINE = 2;

/** `indent` is the indentation of the line on which the literal begins. */
function objectLiteral(fields: Fields, syntax: "json" | "js" | "python", indent: number): string {
  const entries = Object.entries(fields).map(
    ([name, value]) => `${syntax === "js" ? name : JSON.stringify(name)}: ${value}`,
  );
  const padding = syntax === "js" ? " " : "";
  if (entries.length <= MAX_FIELDS_ON_A_LINE) return `{${padding}${entries.join(", ")}${padding}}`;
  const step = syntax === "python" ? 4 : 2;
  const lines = entries.map((entry) => " ".repeat(indent + step) + entry);
  return `{\n${lines.join(",\n")}${syntax === "json" ? "" : ","}\n${" ".repeat(indent)}}`;
}

const QUERIES: Readonly<Partial<Record<OperationId, string>>> = {
  listPets: "?status=available&limit=10",
  listOrders: "?status=placed",
};

/** Pet 1 and order 1 exist as soon as the examples of `createPet` and `placeOrder` have run. */
function requestOf(operationId: OperationId): ExampleRequest {
  const { method, path: template }: PetstoreOperation = OPERATIONS[operationId];
  const path = template.replace(/\{\w+\}/, "1") + (QUERIES[operationId] ?? "");
  const [example] = Object.values(EXAMPLES[operationId].request ?? {});
  if (example === undefined) return { method, path };
  const fields = Object.entries(example.value).map(([name, value]) => [name, toJson(value)]);
  return { method, path, body: Object.fromEntries(fields) };
}

function curlProgram({ method, path, body }: ExampleRequest, { baseUrl, key }: ExampleContext): string {
  const target = { method, url: baseUrl + path, key };
  if (body === undefined) return curlCommand(target);
  const headers = [["Content-Type", "application/json"]] as const;
  return curlCommand({ ...target, headers, body: objectLiteral(body, "json", 2) });
}

/** What the program in TypeScript does once it has a client. */
const CALLS: Readonly<Record<OperationId, string>> = {
  listPets: `const pets = petstore.pets.list({ status: "available", limit: 10 });
for await (const pet of pets) {
  console.log(pet.id, pet.name);
}`,
  createPet: `const pet = await petstore.pets.create(${argumentOf("createPet")});
console.log(pet.id, pet.name);`,
  getPet: `const pet = await petstore.pets.get(1);
console.log(pet.id, pet.name);`,
  listOrders: `const orders = petstore.orders.list({ status: "placed" });
for await (const order of orders) {
  console.log(order.id, order.petId, order.createdAt);
}`,
  placeOrder: `const order = await petstore.orders.place(${argumentOf("placeOrder")});
console.log(order.id, order.status);`,
  getOrder: `const order = await petstore.orders.get(1);
console.log(order.id, order.status);`,
  updateOrder: `const order = await petstore.orders.complete(1);
console.log(order.id, order.status);`,
};

function argumentOf(operationId: OperationId): string {
  return objectLiteral(requestOf(operationId).body ?? {}, "js", 0);
}

function typescriptProgram(call: string, { baseUrl, key }: ExampleContext): string {
  return `// npm install ${siteUrl(baseUrl, CLIENT_PACKAGE_PATH)}
import { Petstore } from "@petstore/client";

const petstore = new Petstore({
  key: "${key}",
  baseUrl: "${baseUrl}",
});

${call}`;
}

function fetchProgram({ method, path, body }: ExampleRequest, { baseUrl, key }: ExampleContext): string {
  const options =
    body === undefined
      ? `  headers: { Authorization: "Bearer ${key}" },`
      : `  method: "${method}",
  headers: {
    Authorization: "Bearer ${key}",
    "Content-Type": "application/json",
  },
  body: JSON.stringify(${objectLiteral(body, "js", 2)}),`;
  return `const url = "${baseUrl}${path}";
const response = await fetch(url, {
${options}
  signal: AbortSignal.timeout(15_000),
});
if (!response.ok) throw new Error(await response.text());

console.log(await response.json());`;
}

function pythonProgram({ method, path, body }: ExampleRequest, { baseUrl, key }: ExampleContext): string {
  const [resource, query] = path.split("?");
  const lines = [
    "import requests",
    "",
    `response = requests.${method.toLowerCase()}(`,
    `    "${baseUrl}${resource}",`,
    `    headers={"Authorization": "Bearer ${key}"},`,
  ];
  if (query !== undefined) lines.push(`    params={${pythonEntries(query)}},`);
  if (body !== undefined) lines.push(`    json=${objectLiteral(body, "python", 4)},`);
  return [...lines, "    timeout=15,", ")", "response.raise_for_status()", "print(response.json())"].join(
    "\n",
  );
}

function pythonEntries(query: string): string {
  const entries = [...new URLSearchParams(query)];
  return entries
    .map(([name, value]) => `"${name}": ${/^\d+$/.test(value) ? value : `"${value}"`}`)
    .join(", ");
}
