import type { ExampleContext } from "./example.ts";
import { pythonObject } from "./object-literal.ts";
import type { ExampleRequest } from "./requests.ts";

export function pythonProgram(
  { method, path, body }: ExampleRequest,
  { baseUrl, key }: ExampleContext,
): string {
  const [resource, query] = path.split("?");
  const lines = [
    "import requests",
    "",
    `response = requests.${method.toLowerCase()}(`,
    `    "${baseUrl}${resource}",`,
    `    headers={"Authorization": "Bearer ${key}"},`,
  ];
  if (query !== undefined) lines.push(`    params={${queryEntries(query)}},`);
  if (body !== undefined) lines.push(`    json=${pythonObject(body, 4)},`);
  return [...lines, ")", "response.raise_for_status()", "print(response.json())"].join("\n");
}

function queryEntries(query: string): string {
  const entries = [...new URLSearchParams(query)];
  return entries
    .map(([name, value]) => `"${name}": ${/^\d+$/.test(value) ? value : `"${value}"`}`)
    .join(", ");
}
