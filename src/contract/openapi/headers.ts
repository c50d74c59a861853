import { encodeCursor } from "../cursor.ts";
import { OPERATIONS, type Operation } from "../operations.ts";
import type { JsonSchema } from "../schema.ts";

interface Header {
  readonly description: string;
  /** Whether every answer that declares the header carries it. */
  readonly required: boolean;
  readonly schema: JsonSchema;
  readonly example: unknown;
}

const { since, sunset } = OPERATIONS.getPet.deprecated;

/** On every answer under the base address, whatever its status. */
export const RATE_LIMIT_HEADERS = [
  "X-RateLimit-Limit",
  "X-RateLimit-Remaining",
  "X-RateLimit-Reset",
] as const;

/** `components/headers`. `Link` stands here twice, because what it links to depends on the operation. */
export const HEADERS = {
  "X-RateLimit-Limit": {
    description:
      "Requests that the reported window allows: of the key's two windows, the one with fewest left.",
    required: true,
    schema: { type: "integer", minimum: 1 },
    example: 60,
  },
  "X-RateLimit-Remaining": {
    description: "Requests left in that window, after this one.",
    required: true,
    schema: { type: "integer", minimum: 0 },
    example: 41,
  },
  "X-RateLimit-Reset": {
    description:
      "Unix second at which that window closes (for a banned key: at which the ban ends), rounded up.",
    required: true,
    schema: { type: "integer", minimum: 0 },
    example: 1794733260,
  },
  "Retry-After": {
    description: "Whole seconds to wait. A request sent after that long is not refused for the same reason.",
    required: true,
    schema: { type: "integer", minimum: 1 },
    example: 23,
  },
  "WWW-Authenticate": {
    description:
      'How to authenticate. `error="invalid_token"` is added when a key was sent and is not valid.',
    required: true,
    schema: { type: "string", pattern: '^Bearer realm="petstore"' },
    example: 'Bearer realm="petstore", error="invalid_token"',
  },
  ETag: {
    description:
      "Names this state of the answer. Send it as `If-None-Match` to be told whether it still holds.",
    required: true,
    schema: { type: "string", pattern: '^(W/)?"[^"]*"$' },
    example: '"1f3a9c0e5b7d2846"',
  },
  NextLink: {
    description: 'The next page, as `rel="next"`; absent on the last one.',
    required: false,
    schema: { type: "string", pattern: '^<[^>]+>; rel="next"$' },
    example: `<https://petstore.test/v1/pets?limit=20&cursor=${encodeCursor("pets", 20n)}>; rel="next"`,
  },
  SuccessorLink: {
    description:
      'What to use instead, as `rel="successor-version"`, and what is to happen, as `rel="deprecation"`.',
    required: true,
    schema: { type: "string", pattern: 'rel="successor-version".*rel="deprecation"' },
    example:
      '<https://petstore.test/v1/pets>; rel="successor-version", ' +
      '<https://petstore.test/docs#deprecation>; rel="deprecation"; type="text/html"',
  },
  Location: {
    description: "Address of what was created.",
    required: true,
    schema: { type: "string", format: "uri" },
    example: "https://petstore.test/v1/pets/1",
  },
  Deprecation: {
    description: "Since when the operation has been deprecated (RFC 9745): `@` and a Unix second.",
    required: true,
    schema: { type: "string", pattern: "^@[0-9]+$" },
    example: `@${since.getTime() / 1000}`,
  },
  Sunset: {
    description: "The instant of the operation's removal (RFC 8594), as an HTTP date.",
    required: true,
    schema: { type: "string", pattern: " GMT$" },
    example: sunset.toUTCString(),
  },
  "Idempotent-Replayed": {
    description:
      "`true` on the stored answer to an earlier request with this `Idempotency-Key`; else absent.",
    required: false,
    schema: { type: "string", enum: ["true"] },
    example: "true",
  },
} as const satisfies Record<string, Header>;

/** No component: linters would call it unused, since it stands in answers that belong to no operation. */
export const ALLOW: Header = {
  description: "The methods this path has.",
  required: true,
  schema: { type: "string", pattern: "^[A-Z]+(, [A-Z]+)*$" },
  example: "GET, HEAD, POST, OPTIONS",
};

type Name = Exclude<keyof typeof HEADERS, "NextLink" | "SuccessorLink">;
export type ResponseHeader = Name | "Link";

/** The headers of one response by reference: the rate-limit triple and what the response adds to it. */
export function headersOf(added: readonly ResponseHeader[], operation?: Operation): JsonSchema {
  const link = operation?.deprecated ? "SuccessorLink" : "NextLink";
  const names = [...RATE_LIMIT_HEADERS, ...added];
  return Object.fromEntries(
    names.map((name) => [name, { $ref: `#/components/headers/${name === "Link" ? link : name}` }]),
  );
}

/** What a deprecated operation announces in each of its answers. */
export const REMOVAL_HEADERS = ["Deprecation", "Sunset", "Link"] as const;

/** The same on a fault, which may strike before the operation is known. */
export function removalIfKnown(): JsonSchema {
  const { Deprecation, Sunset, SuccessorLink } = HEADERS;
  const headers = Object.entries({ Deprecation, Sunset, Link: SuccessorLink });
  return Object.fromEntries(headers.map(([name, header]) => [name, { ...header, required: false }]));
}
