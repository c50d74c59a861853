import { banRulesOf, DEFAULT_URL, expectedUrl, plansOf, serversOf } from "../config/config.ts";
import {
  ADDRESS_OPTIONS,
  BAN_OPTIONS,
  OPENAPI_OPTIONS,
  PLAN_OPTIONS,
  SETTINGS,
  STORAGE_OPTIONS,
} from "../config/options.ts";
import type { DocumentedSettings } from "../petstore/documented-settings.ts";
import { defineCommand } from "./command.ts";

const LIMIT_OPTIONS = {
  ...PLAN_OPTIONS,
  "anonymous-limits": SETTINGS["anonymous-limits"],
  ...BAN_OPTIONS,
} as const;

export const openapi = defineCommand({
  name: "openapi",
  summary: "Print the OpenAPI document, or a Postman collection",
  description:
    "Prints the OpenAPI 3.1 document of the API as JSON, with the URLs of both environments, the plans and the ban rules. A running server has it at /openapi.json. With --postman it prints a Postman collection (format 2.1) for the URL of this environment: import it into Postman and set its variable apiKey.",
  options: {
    ...OPENAPI_OPTIONS,
    ...STORAGE_OPTIONS,
    ...ADDRESS_OPTIONS,
    "other-environment-url": SETTINGS["other-environment-url"],
    ...LIMIT_OPTIONS,
  },
  examples: [
    "petstore openapi > openapi.json",
    "petstore openapi --other-environment-url https://staging.example.com",
    "petstore openapi --postman > petstore.postman_collection.json",
  ],
  async run({ values }, { print }) {
    const { env: environment, "other-environment-url": otherEnvironmentUrl } = values;
    const config = { environment, ...(otherEnvironmentUrl !== undefined && { otherEnvironmentUrl }) };
    const servers = serversOf(config, expectedUrl(values) ?? DEFAULT_URL[environment]);
    const plans = { ...plansOf(values), anonymous: values["anonymous-limits"] };
    const settings = { servers, environment, plans, ban: banRulesOf(values) };
    await print(`${values.postman ? await collection(settings) : await document(settings)}\n`);
    return undefined;
  },
});

async function document(settings: DocumentedSettings): Promise<string> {
  const { openApiJson } = await import("../petstore/openapi/document.ts");
  return openApiJson(settings);
}

async function collection(settings: DocumentedSettings): Promise<string> {
  const { postmanCollection } = await import("../petstore/postman.ts");
  return postmanCollection(settings);
}
