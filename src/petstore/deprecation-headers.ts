import { docsUrl } from "./documented-settings.ts";
import { parseIdentifier } from "../api/json.ts";
import type { Deprecation } from "./operations.ts";
import { type Headers, headerLinesOf } from "../api/responses.ts";

/**
 * `Deprecation` (RFC 9745), `Sunset` (RFC 8594) and `Link` to the documentation and to the replacement: the one of this
 * very pet or, where the path has no valid identifier, the list.
 */
export function deprecationLines(deprecation: Deprecation, baseUrl: string): (identifier: string) => string {
  const [start = "", end = ""] = headerLinesOf(deprecationHeaders(deprecation, baseUrl)).split(IDENTIFIER);
  const withoutIdentifier = start.replace(QUERY, "") + end;
  return (identifier) =>
    parseIdentifier(identifier) === undefined ? withoutIdentifier : start + identifier + end;
}

const IDENTIFIER = /\{\w+\}/;
const QUERY = /\?\w+=$/;

/** `{petId}` stands for the identifier. */
export function deprecationHeaders({ since, sunset, replacement }: Deprecation, baseUrl: string): Headers {
  const successor = `<${baseUrl}${replacement}>; rel="successor-version"`;
  const documentation = `<${docsUrl(baseUrl)}/deprecation>; rel="deprecation"; type="text/html"`;
  return {
    Deprecation: `@${since.getTime() / 1000}`,
    Sunset: sunset.toUTCString(),
    Link: `${successor}, ${documentation}`,
  };
}
