import { curlCommand } from "../curl.ts";
import type { ExampleTemplates } from "../example.ts";
import { pythonProgram } from "../python.ts";
import type { ExampleRequest } from "../requests.ts";
import { withClient } from "../typescript.ts";

const REQUEST: ExampleRequest = {
  method: "POST",
  path: "/pets",
  body: { name: '"Mia"', categoryId: "9007199254740993" },
};

/** Sends an integer that a double would round, and reads it back. */
export const INTEGERS: ExampleTemplates = {
  curl: (context) => curlCommand(REQUEST, context),

  typescript: (context) =>
    withClient(
      `const pet = await petstore.pets.create({
  name: "Mia",
  categoryId: 9007199254740993n,
});
console.log(pet.categoryId); // 9007199254740993n`,
      context,
    ),

  fetch: ({ baseUrl, key }) => `// JSON.rawJSON and the source in JSON.parse:
// Node 22, Bun, Deno, browsers since 2025.
const response = await fetch("${baseUrl}/pets", {
  method: "POST",
  headers: {
    Authorization: "Bearer ${key}",
    "Content-Type": "application/json",
  },
  body: JSON.stringify({
    name: "Mia",
    categoryId: JSON.rawJSON("9007199254740993"),
  }),
});
function revive(name, value, { source }) {
  return typeof value === "number" ? BigInt(source) : value;
}
const pet = JSON.parse(await response.text(), revive);
console.log(pet.categoryId); // 9007199254740993n`,

  python: (context) => pythonProgram(REQUEST, context),
};
