import { expect } from "bun:test";
import Ajv2020, { type ValidateFunction } from "ajv/dist/2020";
import addFormats from "ajv-formats";
import { adminOpenApiJson } from "../src/operator/openapi.ts";
import { readResponse } from "../src/operator/calls.ts";
import { ADMIN_OPERATIONS, type AdminOperationId } from "../src/operator/operations.ts";
import { openApiJson } from "../src/petstore/openapi/document.ts";
import { OPERATIONS } from "../src/petstore/operations.ts";
import { DOCUMENTED_DEFAULTS } from "../src/cli/documented-defaults.ts";
import { parseJson } from "./exact-json.ts";

interface SentRequest {
  readonly method: string;
  /** The path, with or without a query. */
  readonly path: string;
}

interface ReceivedResponse {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
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

/** Headers of HTTP itself, which OpenAPI does not declare. */
const UNDECLARED = new Set(
  "connection content-length content-type date keep-alive transfer-encoding x-content-type-options".split(
    " ",
  ),
);

/** An OpenAPI document, with which responses are compared. */
class Conformance {
  readonly #ajv = new Ajv2020({ strict: false, allErrors: true });
  readonly #document: Json;
  readonly #operations: readonly SentRequest[];
  readonly #compiled = new Map<string, Declared | undefined>();

  constructor(json: string, operations: Readonly<Record<string, SentRequest>>) {
    this.#document = JSON.parse(json);
    // A path without a parameter comes before those that it matches.
    const all = Object.values(operations);
    this.#operations = all.toSorted((a, b) => Number(a.path.includes("{")) - Number(b.path.includes("{")));
    addFormats(this.#ajv);
    this.#ajv.addSchema(closed(json), "openapi");
  }

  /** The operation of a request. HEAD is GET without the body. */
  operationAt({ method, path }: SentRequest): SentRequest | undefined {
    const plain = path.replace(/[?#].*$/s, "");
    const wanted = method === "HEAD" ? "GET" : method;
    return this.#operations.find((operation) => {
      const pattern = new RegExp(`^${operation.path.replace(/\{\w+\}/, "[^/]+")}$`);
      return operation.method === wanted && pattern.test(plain);
    });
  }

  /** What the document has for a status; outside of the operations, what its extension has. */
  declared(operation: SentRequest | undefined, status: number): Declared | undefined {
    const responses =
      operation === undefined
        ? ["x-responses-outside-operations"]
        : ["paths", operation.path, operation.method.toLowerCase(), "responses"];
    const pointer = [...responses, String(status)];
    const name = pointer.join(" ");
    if (!this.#compiled.has(name)) this.#compiled.set(name, this.#compile(pointer));
    return this.#compiled.get(name);
  }

  #compile(pointer: readonly string[]): Declared | undefined {
    if (this.#at(pointer) === undefined) return undefined;
    const target = this.#resolve(pointer);
    const headers = Object.keys(this.#at([...target, "headers"]) ?? {}).map((name) => {
      const header = this.#resolve([...target, "headers", name]);
      const required: unknown = this.#at([...header, "required"]);
      const type: unknown = this.#at([...header, "schema", "type"]);
      const validate = this.#validator([...header, "schema"]);
      return [
        name.toLowerCase(),
        { required: required === true, isInteger: type === "integer", validate },
      ] as const;
    });
    const body = [...target, "content", "application/json", "schema"];
    return { headers: new Map(headers), body: this.#at(body) && this.#validator(body) };
  }

  #at(pointer: readonly string[]): Json | undefined {
    return pointer.reduce<Json | undefined>((node, key) => node?.[key], this.#document);
  }

  /** The pointer itself, or the target of its reference. */
  #resolve(pointer: readonly string[]): readonly string[] {
    const ref: unknown = this.#at([...pointer, "$ref"]);
    return typeof ref === "string" ? ref.slice(2).split("/") : pointer;
  }

  #validator(pointer: readonly string[]): ValidateFunction {
    const escaped = pointer.map((key) => encodeURIComponent(key.replaceAll("~", "~0").replaceAll("/", "~1")));
    return this.#ajv.compile({ $ref: `openapi#/${escaped.join("/")}` });
  }
}

/** Clients must ignore unknown fields; the service must not send any. */
function closed(json: string): Json {
  return JSON.parse(json, (_key, value: unknown) => {
    const isObject =
      typeof value === "object" && value !== null && "properties" in value && "required" in value;
    return isObject ? { additionalProperties: false, ...value } : value;
  });
}

const PUBLIC = new Conformance(
  openApiJson({ ...DOCUMENTED_DEFAULTS, baseUrl: "http://127.0.0.1:1/v1" }),
  OPERATIONS,
);

/**
 * Compares a response with the OpenAPI document: its status, its headers (the required ones are present, and those that
 * are present are declared) and its body. Responses of unknown paths and methods are compared with the document's
 * extension for them.
 */
export function expectConforms({ method, path }: SentRequest, response: ReceivedResponse): void {
  const operation = PUBLIC.operationAt({ method, path: path.replace(/^\/v1(?=\/)/, "") });
  const declared = PUBLIC.declared(operation, response.status);
  const problems = declared
    ? [...headerProblems(declared, response), ...bodyProblems(declared, method, response)]
    : [`status ${response.status} is not declared`];
  expect(problems, requestLine({ method, path }, response)).toEqual([]);
}

const ADMIN = new Conformance(adminOpenApiJson(), ADMIN_OPERATIONS);

/**
 * The same for the admin API, whose document declares no headers; its other paths are not in it. Commands, the console
 * and other servers read responses with the schema itself: they have to read every row.
 */
export function expectAdminConforms({ method, path }: SentRequest, response: ReceivedResponse): void {
  const operation = ADMIN.operationAt({ method, path: path.replace(/^\/api(?=\/)/, "") });
  if (operation === undefined || method === "HEAD") return;
  const declared = ADMIN.declared(operation, response.status);
  const problems = declared
    ? [...bodyProblems(declared, method, response), ...readProblems(operation, response)]
    : [`status ${response.status} is not declared`];
  expect(problems, requestLine({ method, path }, response)).toEqual([]);
}

function readProblems(operation: SentRequest, { status, text }: ReceivedResponse): string[] {
  if (status >= 300) return [];
  const ids = Object.keys(ADMIN_OPERATIONS) as AdminOperationId[];
  const id = ids.find((each) => ADMIN_OPERATIONS[each] === operation);
  const read = id && readResponse(id, text === "" ? undefined : parseJson(text));
  return read?.unreadable === 0 ? [] : ["its own schema does not read all of it"];
}

const requestLine = ({ method, path }: SentRequest, { status, text }: ReceivedResponse) =>
  `${method} ${path} → ${status} ${text.slice(0, 300)}`;

function headerProblems(declared: Declared, { headers }: ReceivedResponse): string[] {
  const problems: string[] = [];
  for (const [name, { required }] of declared.headers) {
    if (required && !headers.has(name)) problems.push(`header ${name} is missing`);
  }
  for (const [name, value] of headers) {
    const header = declared.headers.get(name);
    if (header && !header.validate(header.isInteger ? integerOf(value) : value))
      problems.push(`header ${name} is ${value}: ${JSON.stringify(header.validate.errors)}`);
    if (!header && !UNDECLARED.has(name)) problems.push(`header ${name} is not declared`);
  }
  return problems;
}

const integerOf = (value: string) => (/^\d+$/.test(value) ? Number(value) : value);

function bodyProblems({ body }: Declared, method: string, { headers, text }: ReceivedResponse): string[] {
  if (body === undefined || method === "HEAD") return text === "" ? [] : ["there must be no body"];
  const type = headers.get("content-type");
  if (type !== "application/json") return [`content-type is ${type}`];
  const value = parse(text);
  if (value === undefined) return ["the body is not JSON"];
  return body(value) ? [] : [`the body is wrong: ${JSON.stringify(body.errors)}`];
}

/** Without exact integers: the validator reads the bounds of the schema as doubles. */
function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
