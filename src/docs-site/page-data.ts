import { version } from "../../package.json" with { type: "json" };
import { DOCS_PATH } from "../domain/paths.ts";

/**
 * What the script of the pages of the documentation reads: `TryItData` for requests, `SearchEntry` for the search.
 *
 * A page that can send requests of an operation has a `<section data-try-it>` with the lists of its parameters, and
 * beside it an `.aside` with examples. The script adds inputs to the lists and a key above them (`.try-key`). It shows
 * the request that they make in the examples, and the response below (`.try-it`). The page has `TryItData` as JSON in
 * a `<script type="application/json" id="try-it-data">`. It contains no key.
 */
export interface TryItData {
  readonly environment: "production" | "staging";
  /** The address of the API in programs. Requests go to the server of the page. */
  readonly baseUrl: string;
  readonly operation: TryItOperation;
  /** Header fields of responses, by name: one sentence each, in plain text with `code` in backticks. */
  readonly headers: Readonly<Record<string, string>>;
}

/** The page of error codes; the id of each code is the code: `errors#rate_limited`. */
export const ERROR_CODES_PATH = `${DOCS_PATH}/reference/errors`;

/** The client library of this release, as npm installs it. The file never changes, so a lockfile can name it. */
export const CLIENT_PATH = clientPath(version);

export function clientPath(release: string): string {
  return `/client-${release}.tgz`;
}

export interface TryItOperation {
  readonly method: "GET" | "POST" | "PATCH";
  /** Relative to the URL of the API, with `{parameter}`: `/pets/{petId}`. */
  readonly path: string;
  /** The method of the client library: `pets.create`. `updateOrder` has one for each `status`. */
  readonly call: string | Readonly<Record<string, string>>;
  /** The fields in the order of the lists: path, query, JSON body, headers. */
  readonly fields: readonly TryItField[];
}

export interface TryItField {
  readonly name: string;
  readonly in: "path" | "query" | "header" | "body";
  /** The id of its row: `createPet-name`. */
  readonly anchor: string;
  readonly isRequired: boolean;
  /** `integer-list` is identifiers separated by commas. Integers are sent digit for digit. */
  readonly type: "integer" | "string" | "integer-list";
  /** The only values that are allowed. */
  readonly values?: readonly string[];
  /** Decimal digits. */
  readonly minimum?: string;
  readonly maximum?: string;
  /** The largest number of code points. */
  readonly maxLength?: number;
  /** What the server assumes without a value, as text. */
  readonly default?: string;
  /** A value that works, as text. */
  readonly example?: string;
}

/** The languages of the examples, in the order in which pages show them. */
export const EXAMPLE_LANGUAGES = {
  curl: { label: "curl", syntax: "sh" },
  typescript: { label: "TypeScript", syntax: "ts" },
  fetch: { label: "fetch", syntax: "js" },
  python: { label: "Python", syntax: "python" },
} as const;
export type ExampleLanguage = keyof typeof EXAMPLE_LANGUAGES;

/**
 * A section in the index: the title of its page, its own, its URL from the root of the site, and its text. The page of
 * an operation also has its names: `POST /pets createPet`.
 */
export type SearchEntry = readonly [
  page: string,
  section: string,
  url: string,
  text: string,
  operation?: string,
];
