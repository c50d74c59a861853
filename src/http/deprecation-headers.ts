import { docsUrl } from "../contract/documented-settings.ts";
import type { Deprecation } from "../contract/operations.ts";
import type { Headers } from "./responses.ts";

/** `Deprecation` (RFC 9745), `Sunset` (RFC 8594) and `Link` to the replacement and the documentation. */
export function deprecationHeaders({ since, sunset, replacement }: Deprecation, baseUrl: string): Headers {
  const successor = `<${baseUrl}${replacement}>; rel="successor-version"`;
  const documentation = `<${docsUrl(baseUrl)}#deprecation>; rel="deprecation"; type="text/html"`;
  return {
    Deprecation: `@${since.getTime() / 1000}`,
    Sunset: sunset.toUTCString(),
    Link: `${successor}, ${documentation}`,
  };
}
