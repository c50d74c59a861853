import { BASE_PATH, DOCS_PATH } from "../domain/paths.ts";

/** The URL of a path outside the API, such as `/openapi.json`. */
export function siteUrl(baseUrl: string, path: string): string {
  return baseUrl.slice(0, -BASE_PATH.length) + path;
}

export function docsUrl(baseUrl: string): string {
  return siteUrl(baseUrl, DOCS_PATH);
}
