import { banRulesOf, DEFAULT_URL, expectedUrl, plansOf, serversOf } from "../config/config.ts";
import { ADDRESS_OPTIONS, BAN_OPTIONS, PLAN_OPTIONS, SETTINGS, STORAGE_OPTIONS } from "../config/options.ts";
import { defineCommand } from "./command.ts";

const LIMIT_OPTIONS = {
  ...PLAN_OPTIONS,
  "anonymous-limits": SETTINGS["anonymous-limits"],
  ...BAN_OPTIONS,
} as const;

export const openapi = defineCommand({
  name: "openapi",
  summary: "Print the OpenAPI document",
  description:
    "Prints the OpenAPI 3.1 document of the API as JSON, with the URLs of both environments, the plans and the ban rules. A running server has it at /openapi.json.",
  options: { ...STORAGE_OPTIONS, ...ADDRESS_OPTIONS, "twin-url": SETTINGS["twin-url"], ...LIMIT_OPTIONS },
  examples: [
    "petstore openapi > openapi.json",
    "petstore openapi --public-url https://api.example.com --twin-url https://staging.example.com",
  ],
  async run({ values }, { print }) {
    const { openApiJson } = await import("../contract/openapi/document.ts");
    const { env: environment, "twin-url": twinUrl } = values;
    const config = { environment, ...(twinUrl !== undefined && { twinUrl }) };
    const servers = serversOf(config, expectedUrl(values) ?? DEFAULT_URL[environment]);
    const plans = { ...plansOf(values), anonymous: values["anonymous-limits"] };
    await print(`${openApiJson({ servers, environment, plans, ban: banRulesOf(values) })}\n`);
    return undefined;
  },
});
