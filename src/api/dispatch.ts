import type { Request } from "../http1/index.ts";
import type { Operation } from "./api.ts";
import { andThen, type Awaitable } from "../runtime/awaitable.ts";
import { withTimeout } from "../runtime/timeout.ts";
import {
  BODY_REQUIRED,
  bodyTooLarge,
  INVALID_ENCODING,
  invalidJson,
  malformedIdentifier,
  Rejection,
  Unavailable,
  unsupportedEncoding,
  UNSUPPORTED_MEDIA_TYPE,
} from "./errors.ts";
import { NotJson, parseFields } from "./json-fields.ts";
import { inOwnIteration, LARGE_BODY_BYTES } from "./large-bodies.ts";
import { type Identifier, parseIdentifier } from "./json.ts";
import { Invalid, type ObjectSchema, type InputProblem, type Schema } from "./schema.ts";

/** A request for an operation. */
export interface OperationCall {
  readonly operation: Operation;
  readonly request: Request;
  readonly requestId: string;
  /** The identifier in the path; empty if the path has none. */
  readonly identifier: string;
  readonly maxBodyBytes: number;
  /** Whether other work ran since the head arrived, which may have changed the credential of the caller. */
  readonly hasWaited: boolean;
}

/** The validated input of any operation; undefined where the operation declares none. */
export interface ValidInput {
  readonly id: Identifier | undefined;
  readonly query: Record<string, unknown> | undefined;
  readonly body: unknown;
  /** The body as the client sent it. */
  readonly bytes: Uint8Array | undefined;
}

/** Returns the handler of an operation as a function of any input, which must be validated for that operation. */
export function handlerOf<Id extends string, Context extends readonly unknown[], Result>(
  handlers: { readonly [I in Id]: (input: never, ...context: Context) => Result },
  id: Id,
): (input: ValidInput, ...context: Context) => Result {
  // The type of a handler's input comes from the row of the table by which the input is validated.
  return handlers[id] as (input: unknown, ...context: Context) => Result;
}

/** The steps of a call in which APIs differ. */
export interface CallSteps<C extends OperationCall, Result> {
  /**
   * Called after a body that was waited for, before anything is executed: a body may arrive 30 seconds after the head
   * that authenticated the caller. Returns the call with what is known of the caller now, or a rejection.
   */
  reauthenticate(call: C): Promise<C | Rejection>;
  /** Calls the handler of the operation. */
  handle(input: ValidInput, call: C): Awaitable<Result | Rejection>;
  readonly timeoutMs?: number | undefined;
}

/**
 * receive → validate the body → authenticate again after a wait → handle. Returns what the handler returns, or why the
 * request does not reach it. As a coroutine, it would take 0.6 µs more for each request.
 */
export function dispatch<C extends OperationCall, Result>(
  call: C,
  steps: CallSteps<C, Result>,
): Awaitable<Result | Rejection> {
  const received = receive(call);
  return received instanceof Promise
    ? received.then((late) => handleInTime(late, { ...call, hasWaited: true }, steps))
    : handleInTime(received, call, steps);
}

/** The timeout begins after the body has arrived: slow clients have a timeout of their own. */
function handleInTime<C extends OperationCall, Result>(
  received: Received | Rejection,
  call: C,
  steps: CallSteps<C, Result>,
): Awaitable<Result | Rejection> {
  const { timeoutMs = HANDLING_TIMEOUT_MS } = steps;
  const input = received instanceof Rejection ? received : readInput(received, call, timeoutMs);
  if (input instanceof Promise || (call.hasWaited && call.operation.body !== undefined))
    return withTimeout(timeoutMs, handleAfterWait(input, call, steps), Unavailable);
  if (input instanceof Rejection) return input;
  const handled = steps.handle(input, call);
  return handled instanceof Promise ? withTimeout(timeoutMs, handled, Unavailable) : handled;
}

async function handleAfterWait<C extends OperationCall, Result>(
  input: Awaitable<ValidInput | Rejection>,
  call: C,
  steps: CallSteps<C, Result>,
): Promise<Result | Rejection> {
  const read = await input;
  const current = await steps.reauthenticate(call);
  if (current instanceof Rejection) return current;
  return read instanceof Rejection ? read : steps.handle(read, current);
}

/** The input with its body as the client sent it, which has not been parsed. */
type Received = ValidInput & { readonly body: undefined };

/** Validates the path, then the query, and waits for the body. */
function receive(call: OperationCall): Awaitable<Received | Rejection> {
  const { operation, request, identifier: text, maxBodyBytes } = call;
  const { identifier, query: parameters, body: schema } = operation;
  const id =
    identifier && (parseIdentifier(text) ?? malformedIdentifier(identifier.name, identifier.notFound));
  if (typeof id === "object") return id;
  const query = parameters && readQuery(request.query, parameters);
  if (query instanceof Rejection) return query;
  if (schema === undefined) return { id, query, body: undefined, bytes: undefined };
  return andThen(request.body(maxBodyBytes), (bytes) =>
    bytes === undefined ? bodyTooLarge(maxBodyBytes) : { id, query, body: undefined, bytes },
  );
}

/** Validates the body. Values are never coerced. */
function readInput(
  received: Received,
  { operation: { body: schema }, request }: OperationCall,
  timeoutMs: number,
): Awaitable<ValidInput | Rejection> {
  const { bytes } = received;
  if (schema === undefined || bytes === undefined) return received;
  const read = (): ValidInput | Rejection => {
    const value = parseBody(request, bytes, schema);
    if (value instanceof Rejection) return value;
    const body = readBody(value, schema);
    return body instanceof Rejection ? body : { ...received, body };
  };
  return bytes.length <= LARGE_BODY_BYTES ? read() : inOwnIteration(read, timeoutMs);
}

/** The timeout is shorter than the time that a shutdown waits for requests in progress. */
export const HANDLING_TIMEOUT_MS = 7_000;

type QueryParameters = Readonly<Record<string, Schema<unknown>>>;

/** Validates the declared parameters and ignores others. Every invalid parameter is reported. */
export function readQuery(
  query: string,
  parameters: QueryParameters,
): Record<string, unknown> | Rejection<"invalid_parameter"> {
  const values: Record<string, unknown> = {};
  if (query === "") return values;
  const problems: InputProblem[] = [];
  for (const [name, text] of textsOf(query, parameters)) {
    const result = text === undefined ? REPEATED_PARAMETER : parameters[name]?.read(text);
    if (result instanceof Invalid) problems.push(...result.in(name));
    values[name] = result;
  }
  return problems.length > 0 ? new Rejection("invalid_parameter", problems) : values;
}

const REPEATED_PARAMETER = new Invalid("must be given only once");

/** The values of a repeated list are joined by commas. Any other parameter that is repeated is undefined. */
function textsOf(query: string, parameters: QueryParameters): ReadonlyMap<string, string | undefined> {
  const texts = new Map<string, string | undefined>();
  for (const [name, text] of pairsOf(query)) {
    if (!Object.hasOwn(parameters, name)) continue;
    if (!texts.has(name)) texts.set(name, text);
    else texts.set(name, parameters[name]?.kind === "array" ? `${texts.get(name)},${text}` : undefined);
  }
  return texts;
}

const ENCODED = /[%+]/;

/**
 * A query without encoded characters is split here: a loop over `limit=5` shows 0.14 µs, and 0.97 µs with
 * `URLSearchParams`; over `limit`, `status` and `cursor` 0.5 and 2.3 µs.
 */
function pairsOf(query: string): Iterable<readonly [string, string]> {
  return ENCODED.test(query) ? new URLSearchParams(query) : query.split("&").map(pairOf);
}

function pairOf(text: string): readonly [string, string] {
  const equals = text.indexOf("=");
  return equals === -1 ? [text, ""] : [text.slice(0, equals), text.slice(equals + 1)];
}

const JSON_TYPE = /^application\/json[ \t]*(?:;|$)/i;
const CHARSET = /;[ \t]*charset="?([^";, \t]*)/i;

/** Returns undefined for JSON in UTF-8 without a content encoding. */
function mediaTypeProblem({ headers }: Request): Rejection | undefined {
  const encoding = headers.get("content-encoding");
  if (encoding !== null && encoding.toLowerCase() !== "identity")
    return unsupportedEncoding("Content-Encoding", encoding);
  const contentType = headers.get("content-type") ?? "";
  if (contentType === "application/json") return undefined;
  if (!JSON_TYPE.test(contentType)) return UNSUPPORTED_MEDIA_TYPE;
  const charset = CHARSET.exec(contentType)?.[1];
  if (charset === undefined || charset.toLowerCase() === "utf-8") return undefined;
  return unsupportedEncoding("charset", charset);
}

/** Validates a body that has been parsed. */
export function readBody<T>(value: unknown, schema: ObjectSchema<T>): T | Rejection<"invalid_body"> {
  const body = schema.read(value);
  if (body instanceof Invalid) return new Rejection("invalid_body", body.problems);
  const { needsOneOf } = schema;
  if (needsOneOf.length === 0 || needsOneOf.some((name) => Object.hasOwn(Object(body), name))) return body;
  return new Rejection("invalid_body", `At least one of ${needsOneOf.join(", ")} is required.`);
}

/** Returns the JSON value or a rejection. A missing body is an empty object if no field is required. */
function parseBody(request: Request, bytes: Uint8Array, schema: ObjectSchema<unknown>): unknown {
  if (bytes.length === 0) return schema.isEmptyValid ? {} : BODY_REQUIRED;
  const problem = mediaTypeProblem(request);
  if (problem !== undefined) return problem;
  const text = decode(bytes);
  if (text === undefined) return INVALID_ENCODING;
  const value = parseFields(text, schema);
  if (value instanceof NotJson) return invalidJson(value);
  return value instanceof Invalid ? new Rejection("invalid_body", value.problems) : value;
}

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** Returns undefined for invalid UTF-8 and for a byte order mark, which JSON excludes (RFC 8259, 8.1). */
function decode(bytes: Uint8Array): string | undefined {
  try {
    const text = utf8.decode(bytes);
    return text.startsWith("\uFEFF") ? undefined : text;
  } catch {
    return undefined;
  }
}
