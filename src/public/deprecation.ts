import { IDENTIFIER } from "../api/api.ts";
import { parseIdentifier } from "../api/json.ts";
import { headerLinesOf } from "../api/responses.ts";
import { docsUrl } from "./site-urls.ts";

/** What clients of a deprecated operation need to know. */
export interface Deprecation {
  readonly since: Date;
  readonly sunset: Date;
  /** The path and the query to use instead, with the identifier in the place of `{parameter}`. */
  readonly replacement: string;
  /** The path and the query of the other list to use instead. */
  readonly list: { readonly path: string; readonly title: string };
}

/**
 * The headers of a deprecated operation: `Deprecation` (RFC 9745), `Sunset` (RFC 8594) and `Link`, which refers to the
 * replacements and to the documentation. `replacement` is that of the request.
 */
export function deprecationHeaders(
  { since, sunset, list }: Deprecation,
  baseUrl: string,
  replacement: string,
) {
  const links = [
    `<${baseUrl}${replacement}>; rel="successor-version"`,
    `<${baseUrl}${list.path}>; rel="successor-version"; title="${list.title}"`,
    `<${docsUrl(baseUrl)}/deprecation>; rel="deprecation"; type="text/html"`,
  ];
  return {
    Deprecation: `@${since.getTime() / 1000}`,
    Sunset: sunset.toUTCString(),
    Link: links.join(", "),
  };
}

/**
 * The same as header lines, for the identifier in the path of a request. Without a valid one, the replacement is the
 * list of all. Everything but the identifier is made before the first request.
 */
export function deprecationLines(deprecation: Deprecation, baseUrl: string): (identifier: string) => string {
  const { replacement } = deprecation;
  const linesWith = (path: string) => headerLinesOf(deprecationHeaders(deprecation, baseUrl, path));
  const [start = "", end = ""] = linesWith(replacement).split(IDENTIFIER);
  const withoutIdentifier = linesWith(replacement.replace(/\?.*/, ""));
  return (identifier) =>
    parseIdentifier(identifier) === undefined ? withoutIdentifier : start + identifier + end;
}
