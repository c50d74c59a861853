import { curlCommand } from "../curl.ts";
import type { ExampleTemplates } from "../example.ts";
import { fetchProgram } from "../fetch.ts";
import { pythonProgram } from "../python.ts";
import type { ExampleRequest } from "../requests.ts";
import { withClient } from "../typescript.ts";

const REQUEST: ExampleRequest = { method: "GET", path: "/pets?limit=1" };

/** The shortest request that needs a key. */
export const AUTHENTICATION: ExampleTemplates = {
  curl: (context) => curlCommand(REQUEST, context),
  typescript: (context) =>
    withClient(
      `const { items } = await petstore.pets.listPage({ limit: 1 });
console.log(items);`,
      context,
    ),
  fetch: (context) => fetchProgram(REQUEST, context),
  python: (context) => pythonProgram(REQUEST, context),
};
