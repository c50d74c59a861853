import { KEY_PREFIX } from "../../domain/constants.ts";
import { baseUrlOf, type DocumentedSettings } from "../../petstore/documented-settings.ts";
import { toJson } from "../../api/json.ts";
import { EXAMPLES } from "../../petstore/openapi/examples.ts";
import { componentHeaders } from "../../petstore/openapi/headers.ts";
import { BASE_PATH, OPERATIONS, type PetstoreOperation } from "../../petstore/operations.ts";
import type { OperationId } from "../../domain/usage-history.ts";
import { EXECUTABLE } from "../../executable.ts";
import { ERROR_CODES_PATH, GUIDES } from "../guides.ts";
import { requestFields } from "./request-fields.ts";
import { relativeUrl } from "../site-path.ts";
import type { TryItData, TryItOperation } from "../try-it-data.ts";

/** What the script of the page at `path` needs to send requests of these operations. */
export function tryItData(
  ids: readonly OperationId[],
  path: string,
  settings: DocumentedSettings,
): TryItData {
  return {
    baseUrl: baseUrlOf(settings),
    apiPath: relativeUrl(path, BASE_PATH),
    environment: settings.environment,
    keyPrefix: KEY_PREFIX[settings.environment],
    command: EXECUTABLE === undefined ? "npx petstore" : "petstore",
    operations: ids.map(operationData),
    headers: headerDescriptions(settings),
    errorCodesPath: relativeUrl(path, ERROR_CODES_PATH),
    authenticationPath: relativeUrl(path, GUIDES.authentication),
  };
}

function operationData(id: OperationId): TryItOperation {
  const { method, path, summary, success, deprecated }: PetstoreOperation = OPERATIONS[id];
  const exampleBody = exampleBodyOf(id);
  return {
    id,
    method,
    path,
    summary,
    fields: requestFields(id),
    ...(exampleBody !== undefined && { exampleBody }),
    successStatus: success.status,
    isDeprecated: deprecated !== undefined,
  };
}

/** The body of the first example of a request, as exact JSON. */
function exampleBodyOf(id: OperationId): string | undefined {
  const [example] = Object.values(EXAMPLES[id].request ?? {});
  return example === undefined ? undefined : toJson(example.value, 2);
}

/** Headers that HTTP defines, beside those of the OpenAPI document. */
const STANDARD_HEADERS: Readonly<Record<string, string>> = {
  "content-type": "The format of the body.",
  "content-length": "The length of the body in bytes.",
  date: "The time of the response.",
  "cache-control": "How long the response may be kept.",
  vary: "The request headers that the response depends on.",
};

function headerDescriptions(settings: DocumentedSettings): Readonly<Record<string, string>> {
  const { NextLink, SuccessorLink, ...headers } = componentHeaders(settings);
  const described = Object.entries(headers).map(([name, { description }]) => [
    name.toLowerCase(),
    description,
  ]);
  const link = [NextLink?.description, SuccessorLink?.description].join(" ");
  return { ...STANDARD_HEADERS, ...Object.fromEntries(described), link };
}
