/* The paths of the public listener. */

/** The version of the contract, which is not that of the server. */
export const API_VERSION = "1.0";
/** The beginning of every path of the API. */
export const BASE_PATH = "/v1";
/** The documentation has no version, so its path is outside the base path. */
export const DOCS_PATH = "/docs";
/** The list of the documentation for programs (llmstxt.org). */
export const LLMS_PATH = "/llms.txt";
/** The client library of any release. It redirects to the file of this one. */
export const CLIENT_PACKAGE_PATH = "/client.tgz";
/** The path of the client library, with or without a release: `/client-1.3.0.tgz`. */
export const CLIENT_PACKAGE_PATHS = /^\/client(?:-[^/]+)?\.tgz$/;
export const HEALTH_PATH = "/healthz";
