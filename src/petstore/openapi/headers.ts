import { CHALLENGE, INVALID_KEY_CHALLENGE, PAGE_LIMIT } from "../../domain/constants.ts";
import { encodeCursor } from "../../api/cursor.ts";
import { baseUrlOf, docsUrl, type DocumentedSettings } from "../documented-settings.ts";
import { OPERATIONS, PETSTORE_API, type PetstoreOperation } from "../operations.ts";
import type { JsonSchema } from "../../api/schema.ts";

interface Header {
  readonly description: string;
  /** Whether every response that declares the header has it. */
  readonly required: boolean;
  readonly schema: JsonSchema;
  /** Absent if it depends on the settings; see `examplesOf`. */
  readonly example?: unknown;
}

const { since, sunset, replacement } = OPERATIONS.getPet.deprecated;

/** On every response under the base path, whatever its status. */
export const COMMON_HEADERS = [
  "X-Request-Id",
  "X-Content-Type-Options",
  "X-RateLimit-Limit",
  "X-RateLimit-Remaining",
  "X-RateLimit-Reset",
] as const;

/** There are two kinds of `Link`: the next page, and the replacement of an operation. */
const HEADERS = {
  "X-Request-Id": {
    description:
      "Identifies the request, also in the server's log. Your own `X-Request-Id`, if you sent one of 1 to 128 visible ASCII characters.",
    required: true,
    schema: { type: "string", minLength: 1, maxLength: 128, pattern: "^[!-~]+$" },
    example: "8f14e45f-1a",
  },
  "X-Content-Type-Options": {
    description: "Browsers use the declared `Content-Type`.",
    required: true,
    schema: { type: "string", enum: ["nosniff"] },
    example: "nosniff",
  },
  "X-RateLimit-Limit": {
    description:
      "Requests that the window allows. Of the two windows of a key, the headers describe the one with the fewest requests left.",
    required: true,
    schema: { type: "integer", minimum: 1 },
  },
  "X-RateLimit-Remaining": {
    description: "Requests left in that window after this one.",
    required: true,
    schema: { type: "integer", minimum: 0 },
  },
  "X-RateLimit-Reset": {
    description:
      "Unix time in seconds, rounded up, at which that window closes or, for a banned key, the ban ends.",
    required: true,
    schema: { type: "integer", minimum: 0 },
    example: 1794733260,
  },
  "Retry-After": {
    description: "Seconds to wait before the next request.",
    required: true,
    schema: { type: "integer", minimum: 1 },
    example: 23,
  },
  "WWW-Authenticate": {
    description: 'How to authenticate, with `error="invalid_token"` if the request has an API key.',
    required: true,
    schema: { type: "string", pattern: `^${CHALLENGE}` },
    example: INVALID_KEY_CHALLENGE,
  },
  ETag: {
    description:
      "Identifies this version of the response. Send it in `If-None-Match` to get 304 while it is unchanged.",
    required: true,
    schema: { type: "string", pattern: '^(W/)?"[^"]*"$' },
    example: '"1f3a9c0e5b7d2846"',
  },
  NextLink: {
    description: 'The URL of the next page, as `rel="next"`. The last page has no such link.',
    required: false,
    schema: { type: "string", pattern: '^<[^>]+>; rel="next"$' },
  },
  SuccessorLink: {
    description:
      'The replacement, as `rel="successor-version"`, and the documentation, as `rel="deprecation"`.',
    required: true,
    schema: { type: "string", pattern: 'rel="successor-version".*rel="deprecation"' },
  },
  Location: {
    description: "URL of the new resource.",
    required: true,
    schema: { type: "string", format: "uri" },
  },
  Deprecation: {
    description:
      "The time since which the operation is deprecated (RFC 9745): `@` and the Unix time in seconds.",
    required: true,
    schema: { type: "string", pattern: "^@[0-9]+$" },
    example: `@${since.getTime() / 1000}`,
  },
  Sunset: {
    description: "The time at which the operation is removed (RFC 8594), as an HTTP date.",
    required: true,
    schema: { type: "string", pattern: " GMT$" },
    example: sunset.toUTCString(),
  },
  "Idempotent-Replayed": {
    description:
      "`true` if this is the stored response of an earlier request with the same `Idempotency-Key`.",
    required: false,
    schema: { type: "string", enum: ["true"] },
    example: "true",
  },
} as const satisfies Record<string, Header>;

function examplesOf(settings: DocumentedSettings): Partial<Record<keyof typeof HEADERS, unknown>> {
  const url = baseUrlOf(settings);
  const { perMinute } = settings.plans.free;
  return {
    "X-RateLimit-Limit": perMinute,
    "X-RateLimit-Remaining": perMinute - 1,
    NextLink: `<${url}/pets?limit=${PAGE_LIMIT.default}&cursor=${encodeCursor("pets", 20n)}>; rel="next"`,
    SuccessorLink:
      `<${url}${replacement.replace("{petId}", "1")}>; rel="successor-version", ` +
      `<${docsUrl(url)}/deprecation>; rel="deprecation"; type="text/html"`,
    Location: `${url}/pets/1`,
  };
}

/** `components/headers`. */
export function componentHeaders(settings: DocumentedSettings): Readonly<Record<string, Header>> {
  const examples = examplesOf(settings);
  return Object.fromEntries(
    Object.entries(HEADERS).map(([name, header]) => {
      const example = examples[name as keyof typeof HEADERS];
      return [name, example === undefined ? header : { ...header, example }];
    }),
  );
}

/** Not in `components`: linters report it as unused, because it is on responses outside the operations. */
export const ALLOW: Header = {
  description: "The methods that the path allows.",
  required: true,
  schema: { type: "string", pattern: "^[A-Z]+(, [A-Z]+)*$" },
  example: PETSTORE_API.allowedAt(OPERATIONS.listPets.path),
};

type Name = Exclude<keyof typeof HEADERS, "NextLink" | "SuccessorLink">;
export type ResponseHeader = Name | "Link";

/** References to the headers of one response: the rate limit headers and those in `added`. */
export function headersOf(added: readonly ResponseHeader[], operation?: PetstoreOperation): JsonSchema {
  const link = operation?.deprecated ? "SuccessorLink" : "NextLink";
  const names = [...COMMON_HEADERS, ...added];
  return Object.fromEntries(
    names.map((name) => [name, { $ref: `#/components/headers/${name === "Link" ? link : name}` }]),
  );
}

/** On every response of a deprecated operation. */
export const DEPRECATION_HEADERS = ["Deprecation", "Sunset", "Link"] as const;

/** The same on a 5xx, which may happen before the operation is known. */
export function optionalDeprecationHeaders(settings: DocumentedSettings): JsonSchema {
  const { Deprecation, Sunset, SuccessorLink } = componentHeaders(settings);
  const headers = Object.entries({ Deprecation, Sunset, Link: SuccessorLink });
  return Object.fromEntries(headers.map(([name, header]) => [name, { ...header, required: false }]));
}
