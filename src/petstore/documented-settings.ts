import { DOCS_PATH } from "../domain/constants.ts";
import { BASE_PATH } from "./operations.ts";

interface RateLimits {
  readonly perMinute: number;
  readonly perDay: number;
}

interface BanRules {
  readonly strikes: number;
  readonly graceMs: number;
  readonly lengthMs: number;
  readonly maxLengthMs: number;
}

/** The settings of a server that its documentation states. */
export interface DocumentedSettings {
  /** The environment of the server that shows the documentation: examples use its URL and its keys. */
  readonly environment: "production" | "staging";
  /** Base URLs, including the base path, without a trailing slash. */
  readonly servers: { readonly production: string; readonly staging: string };
  readonly plans: Readonly<Record<"free" | "pro" | "business" | "anonymous", RateLimits>>;
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
