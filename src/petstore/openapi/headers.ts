import { CACHE_CONTROL, CHALLENGE, INVALID_KEY_CHALLENGE } from "../../public/responses.ts";
import { PAGE_LIMIT } from "../../domain/size-limits.ts";
import { encodeCursor } from "../../domain/cursor.ts";
import type { DocumentedSettings } from "../../public/documented-settings.ts";
import { withIdentifier } from "../../api/api.ts";
import { deprecationHeaders } from "../../public/deprecation.ts";
import { NEW_PET_PATH, OPERATIONS, type PetstoreOperation } from "../operations.ts";
import { ALLOWED_EXAMPLE } from "./examples.ts";
import type { JsonSchema } from "../../api/schema.ts";

interface Header {
  readonly description: string;
  /** Whether every response that declares the header has it. */
  readonly required: boolean;
  readonly schema: JsonSchema;
  readonly example: unknown;
}

export const ETAG_EXAMPLE = '"1f3a9c0e5b7d2846"';

/** The headers of every response under the base path, whatever its status. */
export const COMMON_HEADERS = [
  "X-Request-Id",
  "Cache-Control",
  "X-RateLimit-Limit",
  "X-RateLimit-Remaining",
  "X-RateLimit-Reset",
] as const;

function header(description: string, schema: JsonSchema, example: unknown): Header {
  return { description, required: true, schema, example };
}

function nextLink(url: string, list: "pets" | "orders"): Header {
  const description = 'The URL of the next page, as `rel="next"`. The last page has no such link.';
  const example = `<${url}?limit=${PAGE_LIMIT.default}&cursor=${encodeCursor(list, 20n)}>; rel="next"`;
  const schema = { type: "string", pattern: '^<[^>]+>; rel="next"$' };
  return { description, required: false, schema, example };
}

/**
 * The headers in `components/headers`. There are three kinds of `Link`: the next page of each list, and the replacement
 * of an operation.
 */
export function componentHeaders({ baseUrl, policy }: DocumentedSettings) {
  const { perMinute } = policy.current.plans.free;
  const { deprecated } = OPERATIONS.getPet;
  const replacement = withIdentifier(deprecated.replacement, "1");
  const deprecation = deprecationHeaders(deprecated, baseUrl, replacement);
  return {
    "X-Request-Id": header(
      "Identifies the request in the server's log: the `X-Request-Id` that you sent, if it has 1 to 128 visible ASCII characters, or a new one.",
      { type: "string", minLength: 1, maxLength: 128, pattern: "^[!-~]+$" },
      "8f14e45f-1a",
    ),
    "Cache-Control": header(
      "A cache of your own may keep the response, and must validate it with `If-None-Match` before each use.",
      { type: "string", enum: [CACHE_CONTROL] },
      CACHE_CONTROL,
    ),
    "X-RateLimit-Limit": header(
      "Requests that the window allows. A key has two windows; the headers describe the one with fewer requests left.",
      { type: "integer", minimum: 1 },
      perMinute,
    ),
    "X-RateLimit-Remaining": header(
      "Requests left in that window after this one.",
      { type: "integer", minimum: 0 },
      perMinute - 1,
    ),
    "X-RateLimit-Reset": header(
      "Unix time in seconds, rounded up, at which that window closes or, for a banned key, a request is allowed again.",
      { type: "integer", minimum: 0 },
      1794733260,
    ),
    "WWW-Authenticate": header(
      'How to authenticate, with `error="invalid_token"` if the request has an API key.',
      { type: "string", pattern: `^${CHALLENGE}` },
      INVALID_KEY_CHALLENGE,
    ),
    ETag: header(
      "Identifies this version of the response, or of the order that it has. Send it in `If-None-Match` to get 304 while it is unchanged, or in `If-Match` to update an order only if it is unchanged.",
      { type: "string", pattern: '^(W/)?"[^"]*"$' },
      ETAG_EXAMPLE,
    ),
    NextLink: nextLink(`${baseUrl}/pets`, "pets"),
    NextOrdersLink: nextLink(`${baseUrl}/store/orders`, "orders"),
    SuccessorLink: header(
      'The replacement, as `rel="successor-version"`, and the documentation, as `rel="deprecation"`.',
      { type: "string", pattern: 'rel="successor-version".*rel="deprecation"' },
      deprecation.Link,
    ),
    Location: header(
      "URL of the new resource.",
      { type: "string", format: "uri" },
      `${baseUrl}${NEW_PET_PATH}1`,
    ),
    Deprecation: header(
      "When the operation was deprecated (RFC 9745): `@` and the Unix time in seconds.",
      { type: "string", pattern: "^@[0-9]+$" },
      deprecation.Deprecation,
    ),
    Sunset: header(
      "The time of the removal of the operation (RFC 8594), as an HTTP date.",
      { type: "string", pattern: " GMT$" },
      deprecation.Sunset,
    ),
    "Idempotent-Replayed": {
      description:
        "`true` if this is the stored response of an earlier request with the same `Idempotency-Key`.",
      required: false,
      schema: { type: "string", enum: ["true"] },
      example: "true",
    },
  } satisfies Record<string, Header>;
}

/** This header is outside `components`, where linters would report it as unused: no response of an operation has it. */
export const ALLOW = header(
  "The methods that the path allows.",
  { type: "string", pattern: "^[A-Z]+(, [A-Z]+)*$" },
  ALLOWED_EXAMPLE,
);

/** `Retry-After` without examples: each error that has it has one of its own. */
export const RETRY_AFTER = {
  description: "Seconds to wait before the next request.",
  required: true,
  schema: { type: "integer", minimum: 1 },
};

type Headers = ReturnType<typeof componentHeaders>;
type Name = Exclude<keyof Headers, "NextLink" | "NextOrdersLink" | "SuccessorLink">;
export type ResponseHeader = Name | "Link";

/** The headers of one response: the rate limit headers and those in `added`. */
export function headersOf(
  headers: Headers,
  added: readonly ResponseHeader[],
  operation?: PetstoreOperation,
): Readonly<Record<string, Header>> {
  const nextLink = operation?.tag === "Orders" ? "NextOrdersLink" : "NextLink";
  const link = operation?.deprecated ? "SuccessorLink" : nextLink;
  const names = [...COMMON_HEADERS, ...added];
  return Object.fromEntries(names.map((name) => [name, headers[name === "Link" ? link : name]]));
}

/** The headers of every response of a deprecated operation. */
export const DEPRECATION_HEADERS = ["Deprecation", "Sunset", "Link"] as const;

/** The same headers on a 5xx response, where they are optional because it may precede routing. */
export function optionalDeprecationHeaders({ Deprecation, Sunset, SuccessorLink }: Headers): JsonSchema {
  const headers = Object.entries({ Deprecation, Sunset, Link: SuccessorLink });
  return Object.fromEntries(headers.map(([name, header]) => [name, { ...header, required: false }]));
}
