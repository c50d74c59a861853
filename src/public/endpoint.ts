import type { Operation } from "../api/api.ts";
import type { AnyInput } from "../api/dispatch.ts";
import { parseIdentifier } from "../api/json.ts";
import { headerLinesOf, type HeaderValues } from "../api/responses.ts";
import type { Rejection } from "../api/errors.ts";
import type { ApiKeyPrincipal } from "../domain/api-keys.ts";
import type { IdempotentRequest } from "../domain/ports/pets-and-orders.ts";
import type { Decision } from "../domain/rate-limit.ts";
import type { Request } from "../http1/index.ts";
import type { Awaitable } from "../runtime/awaitable.ts";
import { docsUrl } from "./site-urls.ts";
import type { CurrentRevision, ReusableResponses } from "./response-cache.ts";

/** A row of a table of operations for clients. */
export interface PublicOperation<Code extends string = string> extends Operation<Code> {
  readonly acceptsIdempotencyKey?: true;
  readonly acceptsIfMatch?: true;
  readonly success: Required<Operation["success"]> & { readonly headers: readonly SuccessHeader[] };
  readonly deprecated?: Deprecation;
}

/** The headers of a success that depend on the operation. The rate limit headers are on every response. */
type SuccessHeader = "ETag" | "Link" | "Location" | "Deprecation" | "Sunset" | "Idempotent-Replayed";

export interface Deprecation {
  readonly since: Date;
  readonly sunset: Date;
  /** The list to use instead, and its parameter that takes the identifier in the path of the deprecated operation. */
  readonly replacement: { readonly path: string; readonly parameter: string };
  /** The path and the query of the other list to use instead. */
  readonly list: string;
}

/** What a handler knows of the request. */
interface HandlerCall {
  readonly principal: ApiKeyPrincipal;
  readonly decision: Decision;
  readonly request: Pick<Request, "headers">;
}

export type HandlerContext = [call: HandlerCall, idempotentRequest: IdempotentRequest | undefined];

/** A success of any operation. */
export interface AnySuccess {
  readonly body: string;
  readonly headers?: HeaderValues;
  /** The ETag, if the store has it. */
  readonly etag?: string;
  readonly revision?: CurrentRevision | undefined;
}

/** An operation and the code that serves it. */
export interface Endpoint {
  readonly id: string;
  readonly operation: PublicOperation;
  readonly handler: (input: AnyInput, ...context: HandlerContext) => Awaitable<AnySuccess | Rejection>;
  readonly reusable: ReusableResponses | undefined;
  /** The header lines of every response of a deprecated operation. The argument is the identifier in the path. */
  readonly deprecationLines: ((identifier: string) => string) | undefined;
  readonly removal: { readonly at: number; readonly rejection: Rejection } | undefined;
}

/** The path and the query of the replacement, for the text of an identifier. */
export function replacementFor(
  { replacement: { path, parameter } }: Deprecation,
  identifier: string,
): string {
  return `${path}?${parameter}=${identifier}`;
}

/**
 * The headers of a deprecated operation: `Deprecation` (RFC 9745), `Sunset` (RFC 8594) and `Link`, which refers to the
 * replacements and to the documentation. Without a valid identifier, the replacement is the list of all.
 */
export function deprecationHeaders(deprecation: Deprecation, baseUrl: string, identifier: string) {
  const { since, sunset, replacement } = deprecation;
  const isValid = parseIdentifier(identifier) !== undefined;
  const successor = isValid ? replacementFor(deprecation, identifier) : replacement.path;
  return {
    Deprecation: `@${since.getTime() / 1000}`,
    Sunset: sunset.toUTCString(),
    Link: `<${baseUrl}${successor}>${restOfLink(deprecation, baseUrl)}`,
  };
}

function restOfLink({ list }: Deprecation, baseUrl: string): string {
  const other = `<${baseUrl}${list}>; rel="successor-version"; title="by status"`;
  return `; rel="successor-version", ${other}, <${docsUrl(baseUrl)}/deprecation>; rel="deprecation"; type="text/html"`;
}

/** The same as header lines. Lines that were made before save each request a microsecond. */
export function deprecationLines(deprecation: Deprecation, baseUrl: string): (identifier: string) => string {
  const withoutIdentifier = headerLinesOf(deprecationHeaders(deprecation, baseUrl, ""));
  const { Link: _, ...dates } = deprecationHeaders(deprecation, baseUrl, "");
  const start = `${headerLinesOf(dates)}Link: <${baseUrl}`;
  const end = `>${restOfLink(deprecation, baseUrl)}\r\n`;
  return (identifier) =>
    parseIdentifier(identifier) === undefined
      ? withoutIdentifier
      : start + replacementFor(deprecation, identifier) + end;
}
