import { BASE_PATH, DOCS_PATH } from "../domain/constants.ts";
import type { Environment } from "../domain/api-keys.ts";
import type { Plans } from "../domain/plans.ts";
import type { BanRules } from "../domain/rate-limit.ts";

/** The settings of a server that its documentation states. */
export interface DocumentedSettings {
  /** The environment of the server that shows the documentation: examples use its URL and its keys. */
  readonly environment: Environment;
  /** Base URLs, including the base path, without a trailing slash. */
  readonly servers: Readonly<Record<Environment, string>>;
  readonly plans: Plans;
  readonly ban: BanRules;
}

export function baseUrlOf({ servers, environment }: DocumentedSettings): string {
  return servers[environment];
}

/** Of a path outside the API, such as `/openapi.json`. */
export function siteUrl(baseUrl: string, path: string): string {
  return baseUrl.slice(0, -BASE_PATH.length) + path;
}

export function docsUrl(baseUrl: string): string {
  return siteUrl(baseUrl, DOCS_PATH);
}
