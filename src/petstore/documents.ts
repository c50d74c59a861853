import type { ApiDocuments } from "../public/static-routes.ts";
import { documentedVersion } from "./operations.ts";

/** What programs read about the API. The code is imported when it is used, so that a server starts sooner. */
export const PETSTORE_DOCUMENTS: ApiDocuments = {
  version: documentedVersion,
  openApiJson: async (settings) => (await import("./openapi/document.ts")).openApiJson(settings),
  openApiYaml: async (settings) => (await import("./openapi/document.ts")).openApiYaml(settings),
  postmanCollection: async (settings) => (await import("./openapi/postman.ts")).postmanCollection(settings),
};
