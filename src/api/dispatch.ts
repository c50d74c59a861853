import type { Request, Response } from "../http1/index.ts";
import type { Operation } from "./api.ts";
import { andThen, type Awaitable, recover } from "./awaitable.ts";
import { invalidBody, invalidParameter, isRejection, malformedIdentifier, type Rejection } from "./errors.ts";
import { type Identifier, parseIdentifier } from "./json.ts";
import { type JsonBody, type JsonParser, readJsonBody, readQuery, withTimeout } from "./request.ts";
import { Invalid } from "./schema.ts";

/** A request for an operation. */
export interface Call {
  readonly operation: Operation;
  readonly request: Request;
  readonly requestId: string;
  /** In the path; empty if it has none. */
  readonly identifier: string;
}

/** The validated input of any operation; undefined where the operation declares none. */
export interface AnyInput {
  readonly id: Identifier | undefined;
  readonly query: Record<string, unknown> | undefined;
  readonly body: unknown;
  /** The body as the client sent it. */
  readonly bytes: Uint8Array | undefined;
}

/** How an API reads bodies and writes responses. */
export interface Front<C extends Call> {
  maxBodyBytes(call: C): number;
  readonly parse: JsonParser;
  /** Calls the handler of the operation. */
  execute(input: AnyInput, call: C): Awaitable<unknown>;
  succeed(result: unknown, call: C): Awaitable<Response>;
  reject(rejection: Rejection, call: C): Response;
  fail(error: unknown, call: C): Response;
  readonly timeoutMs?: number | undefined;
}

/** validate → handler → respond */
export function dispatch<C extends Call>(call: C, front: Front<C>): Awaitable<Response> {
  return recover(
    () =>
      andThen(validate(call, front), (input) =>
        isRejection(input) ? front.reject(input, call) : execute(input, call, front),
      ),
    (error) => front.fail(error, call),
  );
}

/** The timeout begins after the input has arrived: a slow client is not an error of the service. */
function execute<C extends Call>(input: AnyInput, call: C, front: Front<C>): Awaitable<Response> {
  const response = andThen(front.execute(input, call), (result) =>
    isRejection(result) ? front.reject(result, call) : front.succeed(result, call),
  );
  return response instanceof Promise ? withTimeout(response, front.timeoutMs) : response;
}

/** Validates the path, then the query, then the body. Values are never coerced. */
function validate<C extends Call>(call: C, front: Front<C>): Awaitable<AnyInput | Rejection> {
  const { operation, request, identifier: text } = call;
  const { identifier, query: parameters, body: schema } = operation;
  const id =
    identifier && (parseIdentifier(text) ?? malformedIdentifier(identifier.name, identifier.notFound));
  if (typeof id === "object") return id;
  const query = parameters && readQuery(request.query, parameters);
  if (query instanceof Invalid) return invalidParameter(query);
  if (schema === undefined) return { id, query, body: undefined, bytes: undefined };
  const options = { schema, maxBytes: front.maxBodyBytes(call), parse: front.parse };
  return andThen(readJsonBody(request, options), (json: JsonBody | Rejection): AnyInput | Rejection => {
    if (isRejection(json)) return json;
    const body = schema.read(json.value);
    return body instanceof Invalid ? invalidBody(body) : { id, query, body, bytes: json.bytes };
  });
}
