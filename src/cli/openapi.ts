import { DEFAULT_URL, expectedUrl, serversOf } from "../config/config.ts";
import { ADDRESS_OPTIONS, SETTINGS, STORAGE_OPTIONS } from "../config/options.ts";
import { DEFAULT_PLANS } from "../domain/plans.ts";
import { DEFAULT_BAN } from "../domain/rate-limit.ts";
import { defineCommand } from "./command.ts";

export const openapi = defineCommand({
  name: "openapi",
  summary: "Print the OpenAPI document",
  description:
    "Prints the OpenAPI 3.1 document of the API as JSON, with the URLs of both environments. A running server has it at /openapi.json.",
  options: { ...STORAGE_OPTIONS, ...ADDRESS_OPTIONS, "twin-url": SETTINGS["twin-url"] },
  examples: [
    "petstore openapi > openapi.json",
    "petstore openapi --public-url https://api.example.com --twin-url https://staging.example.com",
  ],
  async run({ values }, { print }) {
    const { openApiJson } = await import("../contract/openapi/document.ts");
    const { env: environment, "twin-url": twinUrl } = values;
    const config = { environment, ...(twinUrl !== undefined && { twinUrl }) };
    const servers = serversOf(config, expectedUrl(values) ?? DEFAULT_URL[environment]);
    await print(
      `${openApiJson({ servers, current: environment, plans: DEFAULT_PLANS, ban: DEFAULT_BAN })}\n`,
    );
    return undefined;
  },
});
