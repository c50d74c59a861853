import { ADDRESS, DEFAULT_URL, expectedUrl, PLACE, serversOf, TWIN } from "../config.ts";
import { DEFAULT_PLANS } from "../domain/plans.ts";
import { DEFAULT_BAN } from "../domain/rate-limit.ts";
import { define } from "./define.ts";

export const openapi = define({
  name: "openapi",
  summary: "Print the OpenAPI document",
  description:
    "Prints the OpenAPI 3.1 document of the interface as JSON, with both environments' base addresses in it. A running server has the same at /openapi.json.",
  positionals: {},
  options: { ...PLACE, ...ADDRESS, ...TWIN },
  required: [],
  asServed: {},
  examples: [
    "petstore openapi > openapi.json",
    "petstore openapi --public-url https://api.example.com --twin-url https://staging.example.com",
  ],
  async run({ values }, { print }) {
    const { openApiJson } = await import("../contract/openapi/document.ts");
    const { env: environment, "twin-url": twinUrl } = values;
    const place = { environment, ...(twinUrl !== undefined && { twinUrl }) };
    const servers = serversOf(place, expectedUrl(values) ?? DEFAULT_URL[environment]);
    await print(
      `${openApiJson({ servers, current: environment, plans: DEFAULT_PLANS, ban: DEFAULT_BAN })}\n`,
    );
    return undefined;
  },
});
