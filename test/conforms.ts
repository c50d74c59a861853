import { expect } from "bun:test";
import Ajv2020, { type ValidateFunction } from "ajv/dist/2020";
import addFormats from "ajv-formats";
import { DEFAULT_PLANS } from "../src/domain/plans.ts";
import { DEFAULT_BAN } from "../src/domain/rate-limit.ts";
import { openApiJson } from "../src/contract/openapi/document.ts";
import { OPERATIONS, type OperationId } from "../src/contract/operations.ts";

/**
 * Holds an answer against the OpenAPI document: its status, its headers in both directions (what is required is there,
 * what is there is declared), and its body. Answers to paths and methods that are no operation are held against the
 * document's extension for them.
 */
export function expectConforms(
  operationId: OperationId | undefined,
  request: { readonly method: string; readonly path: string },
  response: { readonly status: number; readonly headers: Headers; readonly bodyText: string },
): void {
  const found = operationId ?? operationAt(request);
  const { method, path } = request;
  expect(
    faultsOf(found, method, response),
    `${found ?? "no operation"}: ${method} ${path} → ${response.status} ${response.bodyText.slice(0, 200)}`,
  ).toEqual([]);
}

interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly bodyText: string;
}

/** What is wrong with an answer, in words; nothing when it conforms. */
export function faultsOf(operationId: OperationId | undefined, method: string, answer: Answer): string[] {
  const declared = declaredResponse(operationId, answer.status);
  if (!declared) return [`status ${answer.status} is not declared`];
  return [...headerFaults(declared, answer), ...bodyFaults(declared, method, answer)];
}

interface Header {
  readonly required: boolean;
  readonly isInteger: boolean;
  readonly validate: ValidateFunction;
}
interface Declared {
  readonly headers: ReadonlyMap<string, Header>;
  readonly body: ValidateFunction | undefined;
}
type Json = { readonly [key: string]: Json };

const DOCUMENT: Json = JSON.parse(
  openApiJson({
    servers: { production: "http://127.0.0.1:1/v1", staging: "http://127.0.0.1:2/v1" },
    plans: DEFAULT_PLANS,
    ban: DEFAULT_BAN,
  }),
);
const ajv = new Ajv2020({ strict: false, allErrors: true });
addFormats(ajv);
ajv.addSchema(closed(DOCUMENT), "openapi");

/** Clients must bear with fields they do not know; the service must not send any. */
function closed(document: Json): Json {
  const schemas = Object.entries(document["components"]?.["schemas"] ?? {}).map(([name, schema]) => [
    name,
    "properties" in schema ? { ...schema, additionalProperties: false } : schema,
  ]);
  const components = { ...document["components"], schemas: Object.fromEntries(schemas) };
  return { ...document, components };
}

const known = new Map<string, Declared | undefined>();

/** Compiled once for each operation and status, when first asked for. */
function declaredResponse(operationId: OperationId | undefined, status: number): Declared | undefined {
  const name = `${operationId} ${status}`;
  if (!known.has(name)) known.set(name, compile(operationId, status));
  return known.get(name);
}

function compile(operationId: OperationId | undefined, status: number): Declared | undefined {
  const responses = operationId === undefined ? ["x-responses-outside-operations"] : responsesOf(operationId);
  const pointer = [...responses, String(status)];
  if (at(pointer) === undefined) return undefined;
  const target = resolve(pointer);
  const headers = Object.keys(at([...target, "headers"]) ?? {}).map((name) => {
    const header = resolve([...target, "headers", name]);
    const required: unknown = at([...header, "required"]);
    const type: unknown = at([...header, "schema", "type"]);
    const validate = validator([...header, "schema"]);
    return [
      name.toLowerCase(),
      { required: required === true, isInteger: type === "integer", validate },
    ] as const;
  });
  const body = [...target, "content", "application/json", "schema"];
  return { headers: new Map(headers), body: at(body) && validator(body) };
}

function responsesOf(operationId: OperationId): string[] {
  const { path, method } = OPERATIONS[operationId];
  return ["paths", path, method.toLowerCase(), "responses"];
}

function at(pointer: readonly string[]): Json | undefined {
  return pointer.reduce<Json | undefined>((node, key) => node?.[key], DOCUMENT);
}

/** The place itself, or the one that it refers to. */
function resolve(pointer: readonly string[]): readonly string[] {
  const ref: unknown = at([...pointer, "$ref"]);
  return typeof ref === "string" ? ref.slice(2).split("/") : pointer;
}

function validator(pointer: readonly string[]): ValidateFunction {
  const escaped = pointer.map((key) => encodeURIComponent(key.replaceAll("~", "~0").replaceAll("/", "~1")));
  return ajv.compile({ $ref: `openapi#/${escaped.join("/")}` });
}

/** Of HTTP itself rather than of this interface, so they need no declaration. */
const PLUMBING = new Set([
  "connection",
  "content-length",
  "content-type",
  "date",
  "keep-alive",
  "transfer-encoding",
]);

function headerFaults(declared: Declared, { headers }: Answer): string[] {
  const faults: string[] = [];
  for (const [name, { required }] of declared.headers) {
    if (required && !headers.has(name)) faults.push(`header ${name} is missing`);
  }
  for (const [name, value] of headers) {
    const header = declared.headers.get(name);
    if (header && !header.validate(header.isInteger ? integerOf(value) : value))
      faults.push(`header ${name}: ${value} ${ajv.errorsText(header.validate.errors)}`);
    if (!header && !PLUMBING.has(name)) faults.push(`header ${name} is not declared`);
  }
  return faults;
}

const integerOf = (value: string) => (/^\d+$/.test(value) ? Number(value) : value);

function bodyFaults({ body }: Declared, method: string, { headers, bodyText, status }: Answer): string[] {
  if (body === undefined || method === "HEAD") return bodyText === "" ? [] : [`${status} must have no body`];
  const type = headers.get("content-type");
  if (type !== "application/json") return [`content-type is ${type}`];
  const value = parse(bodyText);
  if (value === undefined) return ["the body is not JSON"];
  return body(value) ? [] : [`the body ${ajv.errorsText(body.errors)}`];
}

/** Plainly: the schema's own bounds are doubles to the validator, and exactness has tests of its own. */
function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** By the table: the operation that lives at this path, `/v1` and query aside. HEAD is GET without the body. */
export function operationAt({ method, path }: { method: string; path: string }): OperationId | undefined {
  const plain = path.replace(/[?#].*$/s, "").replace(/^\/v1(?=\/)/, "");
  const wanted = method === "HEAD" ? "GET" : method;
  return (Object.keys(OPERATIONS) as OperationId[]).find((id) => {
    const operation = OPERATIONS[id];
    const pattern = new RegExp(`^${operation.path.replace(/\{\w+\}/, "[^/]+")}$`);
    return operation.method === wanted && pattern.test(plain);
  });
}
