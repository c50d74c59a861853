import { BASE_PATH, DOCS_PATH } from "../domain/paths.ts";
import type { Environment, Plans } from "../domain/api-keys.ts";
import type { BanRules } from "../domain/rate-limit.ts";

/** The settings of a server that its documentation states. */
export interface DocumentedSettings {
  /** The environment of the server that shows the documentation: examples use its URL and its keys. */
  readonly environment: Environment;
  /** The URL of the API, with the base path and without a slash at its end. */
  readonly baseUrl: string;
  /** The base URL of the other environment, if the operator has set it. */
  readonly otherUrl?: string | undefined;
  /** It is another object when it or the ban rules have changed. */
  readonly plans: Plans;
  readonly ban: BanRules;
  /** The time, by which the documentation says that an operation was removed; before any removal by default. */
  readonly now?: () => number;
}

/** Whether the documentation says that an operation with this time of removal was removed. */
export function isPast(time: Date, { now = () => 0 }: Pick<DocumentedSettings, "now">): boolean {
  return now() >= time.getTime();
}

/** The URL of a path outside the API, such as `/openapi.json`. */
export function siteUrl(baseUrl: string, path: string): string {
  return baseUrl.slice(0, -BASE_PATH.length) + path;
}

export function docsUrl(baseUrl: string): string {
  return siteUrl(baseUrl, DOCS_PATH);
}
