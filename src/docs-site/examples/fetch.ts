import type { ExampleContext } from "./example.ts";
import { javascriptObject } from "./object-literal.ts";
import type { ExampleRequest } from "./requests.ts";

export function fetchProgram(
  { method, path, body }: ExampleRequest,
  { baseUrl, key }: ExampleContext,
): string {
  const options =
    body === undefined
      ? [`  headers: { Authorization: "Bearer ${key}" },`]
      : [
          `  method: "${method}",`,
          "  headers: {",
          `    Authorization: "Bearer ${key}",`,
          '    "Content-Type": "application/json",',
          "  },",
          `  body: JSON.stringify(${javascriptObject(body, 2)}),`,
        ];
  return [
    `const response = await fetch("${baseUrl}${path}", {`,
    ...options,
    "});",
    "if (!response.ok) throw new Error(await response.text());",
    "",
    "console.log(await response.json());",
  ].join("\n");
}
