import { expect } from "bun:test";
import Ajv2020, { type ValidateFunction } from "ajv/dist/2020";
import addFormats from "ajv-formats";
import { openApiJson } from "../src/petstore/openapi/document.ts";
import { OPERATIONS } from "../src/petstore/operations.ts";
import type { OperationId } from "../src/domain/usage-history.ts";
import { DEFAULT_PLANS } from "../src/domain/api-keys.ts";
import { DEFAULT_BAN } from "../src/domain/rate-limit.ts";

interface ReceivedResponse {
  readonly status: number;
  readonly headers: Headers;
  readonly bodyText: string;
}

/**
 * Compares a response with the OpenAPI document: its status, its headers (the required ones are present, and those that
 * are present are declared) and its body. Responses of unknown paths and methods are compared with the document's
 * extension for them.
 */
export function expectConforms(
  operationId: OperationId | undefined,
  request: { readonly method: string; readonly path: string },
  response: ReceivedResponse,
): void {
  const found = operationId ?? operationAt(request);
  const { method, path } = request;
  expect(
    problemsOf(found, method, response),
    `${found ?? "no operation"}: ${method} ${path} → ${response.status} ${response.bodyText.slice(0, 200)}`,
  ).toEqual([]);
}

/** Every difference between a response and the document. */
function problemsOf(
  operationId: OperationId | undefined,
  method: string,
  response: ReceivedResponse,
): string[] {
  const declared = declaredResponse(operationId, response.status);
  if (!declared) return [`status ${response.status} is not declared`];
  return [...headerProblems(declared, response), ...bodyProblems(declared, method, response)];
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
    environment: "production",
    baseUrl: "http://127.0.0.1:1/v1",
    plans: DEFAULT_PLANS,
    ban: DEFAULT_BAN,
  }),
);
const ajv = new Ajv2020({ strict: false, allErrors: true });
addFormats(ajv);
ajv.addSchema(closed(DOCUMENT), "openapi");

/** Clients must ignore unknown fields; the service must not send any. */
function closed(document: Json): Json {
  const schemas = Object.entries(document["components"]?.["schemas"] ?? {}).map(([name, schema]) => [
    name,
    "properties" in schema ? { ...schema, additionalProperties: false } : schema,
  ]);
  const components = { ...document["components"], schemas: Object.fromEntries(schemas) };
  return { ...document, components };
}

const compiled = new Map<string, Declared | undefined>();

/** Compiled once for each operation and status. */
function declaredResponse(operationId: OperationId | undefined, status: number): Declared | undefined {
  const name = `${operationId} ${status}`;
  if (!compiled.has(name)) compiled.set(name, compile(operationId, status));
  return compiled.get(name);
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

/** The pointer itself, or the target of its reference. */
function resolve(pointer: readonly string[]): readonly string[] {
  const ref: unknown = at([...pointer, "$ref"]);
  return typeof ref === "string" ? ref.slice(2).split("/") : pointer;
}

function validator(pointer: readonly string[]): ValidateFunction {
  const escaped = pointer.map((key) => encodeURIComponent(key.replaceAll("~", "~0").replaceAll("/", "~1")));
  return ajv.compile({ $ref: `openapi#/${escaped.join("/")}` });
}

/** Headers of HTTP itself, which OpenAPI does not declare. */
const UNDECLARED = new Set(
  "cache-control connection content-length content-type date keep-alive transfer-encoding".split(" "),
);

function headerProblems(declared: Declared, { headers }: ReceivedResponse): string[] {
  const problems: string[] = [];
  for (const [name, { required }] of declared.headers) {
    if (required && !headers.has(name)) problems.push(`header ${name} is missing`);
  }
  for (const [name, value] of headers) {
    const header = declared.headers.get(name);
    if (header && !header.validate(header.isInteger ? integerOf(value) : value))
      problems.push(`header ${name}: ${value} ${ajv.errorsText(header.validate.errors)}`);
    if (!header && !UNDECLARED.has(name)) problems.push(`header ${name} is not declared`);
  }
  return problems;
}

const integerOf = (value: string) => (/^\d+$/.test(value) ? Number(value) : value);

function bodyProblems(
  { body }: Declared,
  method: string,
  { headers, bodyText, status }: ReceivedResponse,
): string[] {
  if (body === undefined || method === "HEAD") return bodyText === "" ? [] : [`${status} must have no body`];
  const type = headers.get("content-type");
  if (type !== "application/json") return [`content-type is ${type}`];
  const value = parse(bodyText);
  if (value === undefined) return ["the body is not JSON"];
  return body(value) ? [] : [`the body ${ajv.errorsText(body.errors)}`];
}

/** Without exact integers: the validator reads the bounds of the schema as doubles. */
function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** The operation of a method and a path, with or without `/v1` and a query. HEAD is GET without the body. */
function operationAt({ method, path }: { method: string; path: string }): OperationId | undefined {
  const plain = path.replace(/[?#].*$/s, "").replace(/^\/v1(?=\/)/, "");
  const wanted = method === "HEAD" ? "GET" : method;
  return (Object.keys(OPERATIONS) as OperationId[]).find((id) => {
    const operation = OPERATIONS[id];
    const pattern = new RegExp(`^${operation.path.replace(/\{\w+\}/, "[^/]+")}$`);
    return operation.method === wanted && pattern.test(plain);
  });
}
