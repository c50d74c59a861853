import { banRulesOf, DEFAULT_URL, expectedUrl, plansOf } from "../config/config.ts";
import { ADDRESS_OPTIONS, SAVED_OPTIONS, SETTINGS, STORAGE_OPTIONS } from "../config/options.ts";
import { defineCommand } from "./command.ts";

export const openapi = defineCommand({
  name: "openapi",
  summary: "Print the OpenAPI document",
  description:
    "Prints the OpenAPI 3.1 document of the API as JSON, with the URLs of both environments, the plans and the ban rules. A running server has it at /openapi.json. Postman and generators import it from there or from a file.",
  options: {
    ...STORAGE_OPTIONS,
    ...ADDRESS_OPTIONS,
    "other-environment-url": SETTINGS["other-environment-url"],
    ...SAVED_OPTIONS,
  },
  examples: [
    "petstore openapi > openapi.json",
    "petstore openapi --other-environment-url https://staging.example.com",
  ],
  async run({ values }) {
    const { openApiJson } = await import("../petstore/openapi/document.ts");
    const { env: environment, "other-environment-url": otherUrl } = values;
    const baseUrl = expectedUrl(values) ?? DEFAULT_URL[environment];
    const plans = { ...plansOf(values), anonymous: values["anonymous-limits"] };
    const settings = { environment, baseUrl, otherUrl, plans, ban: banRulesOf(values) };
    return `${openApiJson(settings)}\n`;
  },
});
