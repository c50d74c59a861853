/* Names and times that the API promises. Validation, messages and the OpenAPI document take them from here. */

export const IDEMPOTENCY_LIFETIME_MS = 24 * 60 * 60 * 1000;

/** A key that has used this much of a window is shown as one that is close to its limit. */
export const CLOSE_TO_LIMIT_PERCENT = 80;

/** The time after which a server that was killed, or the database, counts as gone. */
export const LATE_SECONDS = 5;

/** The beginning of every API key, by environment. */
export const KEY_PREFIX = { production: "pet_live_", staging: "pet_test_" } as const;

/** API keys and tokens of operators, which clients also send in wrong places. The log keeps the prefix. */
export const SECRET = /(pet_(?:live|test|admin)_)[\w-]+/g;

export function maskSecrets(text: string): string {
  return text.replace(SECRET, "$1…");
}

/** The version of the contract, which is not that of the server. */
export const API_VERSION = "1.0";

/** A cache may keep a response for its own user, but must validate it again before each use. */
export const CACHE_CONTROL = "private, no-cache";

/** `WWW-Authenticate` of a 401 response, without and with an API key in the request. */
export const CHALLENGE = 'Bearer realm="petstore"';
export const INVALID_KEY_CHALLENGE = `${CHALLENGE}, error="invalid_token"`;

/** The beginning of every path of the API. */
export const BASE_PATH = "/v1";
/** The documentation has no version, so its path is outside the base path. */
export const DOCS_PATH = "/docs";
/** The API as a collection for Postman, named as Postman names its files. */
export const POSTMAN_PATH = "/postman_collection.json";
/** The list of the documentation for programs (llmstxt.org). */
export const LLMS_PATH = "/llms.txt";
/** The client library of any release. It redirects to the file of this one. */
export const CLIENT_PACKAGE_PATH = "/client.tgz";
/** The path of the client library, with or without a release: `/client-1.2.0.tgz`. */
export const CLIENT_PACKAGE_PATHS = /^\/client(?:-[^/]+)?\.tgz$/;
export const HEALTH_PATH = "/healthz";

export const LOG_FORMATS = ["json", "text"] as const;
export type LogFormat = (typeof LOG_FORMATS)[number];
/** The levels in ascending order of importance. */
export const LOG_LEVELS = ["info", "warn", "error"] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

/** The fields that an operator may leave out of the access log. */
export const ACCESS_LOG_FIELDS = ["address", "path", "userAgent", "errorCode", "traceId"] as const;
export type AccessLogField = (typeof ACCESS_LOG_FIELDS)[number];

/** Logs cut the methods, paths and other texts of requests: each can be as long as the head of a request. */
export const MAX_LOGGED_METHOD_LENGTH = 20;
export const MAX_LOGGED_LENGTH = 200;
