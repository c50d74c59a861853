import type { Operation } from "../contract/operations.ts";
import type { HeaderFields } from "./responses.ts";

type Deprecation = NonNullable<Operation["deprecated"]>;

/** `Deprecation` (RFC 9745), `Sunset` (RFC 8594), and where to go instead. */
export function removalFields({ since, sunset, replacement }: Deprecation, baseUrl: string): HeaderFields {
  const successor = `<${baseUrl}${replacement}>; rel="successor-version"`;
  const documentation = `<${docsUrl(baseUrl)}#deprecation>; rel="deprecation"; type="text/html"`;
  return {
    Deprecation: `@${since.getTime() / 1000}`,
    Sunset: sunset.toUTCString(),
    Link: `${successor}, ${documentation}`,
  };
}

/** The documentation is not part of the versioned interface: it lives beside `/v1`. */
export function docsUrl(baseUrl: string): string {
  return baseUrl.replace(/\/v1$/, "/docs");
}
