import type { OperationId } from "../domain/operation-ids.ts";
import { type DocumentedSettings, isPast } from "../public/documented-settings.ts";
import type { ApiDocuments } from "../public/static-routes.ts";
import { PETSTORE_API, type PetstoreOperation } from "./operations.ts";

/** What programs read about the API. The code is imported when it is used, so that a server starts sooner. */
export const PETSTORE_DOCUMENTS: ApiDocuments = {
  version: documentedVersion,
  openApiJson: async (settings) => (await import("./openapi/document.ts")).openApiJson(settings),
  openApiYaml: async (settings) => (await import("./openapi/document.ts")).openApiYaml(settings),
};

/** Returns another text when what the documentation states has changed. */
export function documentedVersion(settings: DocumentedSettings): string {
  const { policy } = settings;
  const removed = PETSTORE_API.rows.filter(
    ([, { deprecated }]: readonly [OperationId, PetstoreOperation]) =>
      deprecated !== undefined && isPast(deprecated.sunset, settings),
  );
  return JSON.stringify([policy.current, removed.map(([id]) => id)]);
}
