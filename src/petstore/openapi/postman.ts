import { toJson } from "../../api/json.ts";
import type { Parameter } from "../../api/openapi.ts";
import type { JsonSchema } from "../../api/schema.ts";
import { KEY_PREFIX } from "../../domain/secrets.ts";
import type { OperationId } from "../../domain/operation-ids.ts";
import type { DocumentedSettings } from "../../public/documented-settings.ts";
import { docsUrl } from "../../public/site-urls.ts";
import { PETSTORE_API, type PetstoreOperation } from "../operations.ts";
import { parametersOf, TAGS } from "./document.ts";
import { EXAMPLES } from "./examples.ts";

const FORMAT = "https://schema.getpostman.com/json/collection/v2.1.0/collection.json";

const ROWS: readonly (readonly [OperationId, PetstoreOperation])[] = PETSTORE_API.rows;

/** The name of the identifier in paths, by tag: `petId` and `orderId`. Each is a variable of the collection. */
const IDENTIFIERS: ReadonlyMap<string, string> = new Map(
  ROWS.flatMap(([, { tag, identifier }]) => (identifier ? [[tag, identifier.name]] : [])),
);
const NAMES = [...IDENTIFIERS.values()];
const IDENTIFIER_IN_BODY = new RegExp(`("(${NAMES.join("|")})": )\\d+`, "g");

/**
 * The API as a collection for Postman. Its requests work as they are, in their order, once `apiKey` is set: optional
 * parameters are disabled, and a request for one pet or order has the identifier of the last that was created.
 */
export function postmanCollection({ environment, baseUrl }: DocumentedSettings): string {
  const variables = {
    baseUrl,
    apiKey: `${KEY_PREFIX[environment]}YOUR_KEY`,
    ...Object.fromEntries(NAMES.map((name) => [name, "1"])),
  };
  const collection = {
    info: {
      name: environment === "production" ? "Petstore" : `Petstore ${environment}`,
      description: `Set the variable \`apiKey\` to your API key. ${NAMES.map((name) => `\`${name}\``).join(" and ")} are those that you created last. [Documentation](${docsUrl(baseUrl)})`,
      schema: FORMAT,
    },
    auth: { type: "bearer", bearer: [{ key: "token", value: "{{apiKey}}", type: "string" }] },
    variable: Object.entries(variables).map(([key, value]) => ({ key, value })),
    item: TAGS.map(({ name, description }) => ({
      name,
      description,
      item: ROWS.filter(([, { tag }]) => tag === name).map(([id, operation]) => itemOf(id, operation)),
    })),
  };
  return toJson(collection, 2);
}

function itemOf(id: OperationId, operation: PetstoreOperation): JsonSchema {
  const { method, path, tag, summary, description, deprecated, success } = operation;
  const created = success.status === 201 ? IDENTIFIERS.get(tag) : undefined;
  const parts = path.slice(1).replace(/\{(\w+)\}/g, ":$1");
  const [example] = Object.values(EXAMPLES[id].request ?? {});
  return {
    name: deprecated ? `${summary} (deprecated)` : summary,
    ...(created && { event: [storeIdentifier(created)] }),
    request: {
      method,
      description,
      header: [...(example ? [JSON_TYPE] : []), ...valuesIn("header", operation)],
      ...(example && { body: bodyOf(example.value) }),
      url: {
        raw: `{{baseUrl}}/${parts}`,
        host: ["{{baseUrl}}"],
        path: parts.split("/"),
        query: valuesIn("query", operation),
        variable: valuesIn("path", operation),
      },
    },
  };
}

const JSON_TYPE = { key: "Content-Type", value: "application/json" };

function bodyOf(value: object): JsonSchema {
  const raw = toJson(value, 2).replace(IDENTIFIER_IN_BODY, "$1{{$2}}");
  return { mode: "raw", raw, options: { raw: { language: "json" } } };
}

/** The parameters in one place. */
function valuesIn(place: Parameter["in"], operation: PetstoreOperation): JsonSchema[] {
  return parametersOf(operation)
    .filter((parameter) => parameter.in === place)
    .map((parameter) => ({
      key: parameter.name,
      value: valueOf(parameter),
      description: parameter.description,
      disabled: !parameter.required,
    }));
}

/** A value that works: for an identifier its variable, and for an `Idempotency-Key` a new one in each request. */
function valueOf({ name, required, example }: Parameter): string {
  if (required) return `{{${name}}}`;
  return name === "Idempotency-Key" ? "{{$guid}}" : String(example);
}

/** Sets the variable to what was created, with all digits, for the requests that follow. */
function storeIdentifier(name: string): JsonSchema {
  const script = [
    'const created = /^{"id":(\\d+)/.exec(pm.response.text());',
    `if (created) pm.collectionVariables.set("${name}", created[1]);`,
  ];
  return { listen: "test", script: { type: "text/javascript", exec: script } };
}
