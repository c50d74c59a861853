import { CLIENT_PACKAGE_PATH } from "../domain/paths.ts";
import { KEY_PREFIX } from "../domain/secrets.ts";
import type { OperationId } from "../domain/operation-ids.ts";
import type { DocumentedSettings } from "../public/documented-settings.ts";
import { siteUrl } from "../public/site-urls.ts";
import { type Example, programsOf } from "./browser/programs.ts";
import { initialValues } from "./browser/request.ts";
import { tryItOperation } from "./fields.ts";
import { CLIENT_PATH } from "./page-data.ts";

/** What the examples take from the configuration of a server. */
export interface ExampleContext {
  /** The URL with the base path and without a slash at its end: `http://127.0.0.1:8080/v1`. */
  readonly baseUrl: string;
  readonly key: string;
}

/** The address of the server and a placeholder that says where the API key belongs. */
export function exampleContext({ baseUrl, environment }: DocumentedSettings): ExampleContext {
  return { baseUrl, key: `${KEY_PREFIX[environment]}YOUR_KEY` };
}

/** What the Markdown of the guides contains. */
const MARKDOWN_CONTEXT: ExampleContext = {
  baseUrl: "http://127.0.0.1:8080/v1",
  key: `${KEY_PREFIX.production}YOUR_KEY`,
};

/** The Markdown of a guide with the address and the key of `context` in its examples. */
export function inContext(text: string, { baseUrl, key }: ExampleContext): string {
  const replacements = [
    [MARKDOWN_CONTEXT.baseUrl, baseUrl],
    [siteUrl(MARKDOWN_CONTEXT.baseUrl, "/openapi.json"), siteUrl(baseUrl, "/openapi.json")],
    [siteUrl(MARKDOWN_CONTEXT.baseUrl, CLIENT_PACKAGE_PATH), siteUrl(baseUrl, CLIENT_PATH)],
    [MARKDOWN_CONTEXT.key, key],
  ] as const;
  return replacements.reduce((result, [from, to]) => result.replaceAll(from, () => to), text);
}

/**
 * The examples of an operation, one for each language: what its form sends. Pet 1 and order 1 exist as soon as the
 * examples of `createPet` and `placeOrder` have run.
 */
export function examplesOf(operationId: OperationId, context: ExampleContext): readonly Example[] {
  const operation = tryItOperation(operationId);
  return programsOf({ ...context, operation, values: initialValues(operation.fields) });
}
