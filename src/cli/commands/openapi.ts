import { DEFAULT_URL, expectedUrl } from "../../config/listen-urls.ts";
import { ADDRESS_OPTIONS, SETTINGS, STORAGE_OPTIONS } from "../../config/options.ts";
import { defineCommand } from "../command.ts";
import { DOCUMENTED_DEFAULTS } from "../documented-defaults.ts";

export const openapi = defineCommand({
  name: "openapi",
  summary: "Print the OpenAPI document",
  description:
    "Prints the OpenAPI 3.1 document of the API as JSON, with the URLs of both environments and the first limits and ban rules. A running server has it at /openapi.json, with its own. Postman and generators import it from there or from a file.",
  data: "nothing",
  options: {
    ...STORAGE_OPTIONS,
    ...ADDRESS_OPTIONS,
    "other-environment-url": SETTINGS["other-environment-url"],
  },
  examples: [
    "petstore openapi > openapi.json",
    "petstore openapi --other-environment-url https://staging.example.com",
  ],
  async run({ values }) {
    const { openApiJson } = await import("../../petstore/openapi/document.ts");
    const { env: environment, "other-environment-url": otherEnvironmentUrl } = values;
    const baseUrl = expectedUrl(values) ?? DEFAULT_URL[environment];
    const given = { environment, baseUrl, otherEnvironmentUrl };
    return `${openApiJson({ ...DOCUMENTED_DEFAULTS, ...given, now: Date.now })}\n`;
  },
});
