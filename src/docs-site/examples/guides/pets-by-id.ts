import { curlCommand } from "../curl.ts";
import type { ExampleTemplates } from "../example.ts";
import { fetchProgram } from "../fetch.ts";
import { pythonProgram } from "../python.ts";
import type { ExampleRequest } from "../requests.ts";
import { withClient } from "../typescript.ts";

const REQUEST: ExampleRequest = { method: "GET", path: "/pets?id=7,9,12&limit=100" };

/** Several pets in one request. */
export const PETS_BY_ID: ExampleTemplates = {
  curl: (context) => curlCommand(REQUEST, context),
  typescript: (context) =>
    withClient(
      `const pets = await petstore.pets.byIds([7, 9, 12]);
console.log(pets);`,
      context,
    ),
  fetch: (context) => fetchProgram(REQUEST, context),
  python: (context) => pythonProgram(REQUEST, context),
};
