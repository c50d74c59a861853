import type { ExampleContext } from "./example.ts";
import { jsonObject } from "./object-literal.ts";
import type { ExampleRequest } from "./requests.ts";

/** curl sends POST if it has a body, and GET otherwise. */
export function curlCommand(
  { method, path, body }: ExampleRequest,
  { baseUrl, key }: ExampleContext,
): string {
  const isDefault = method === (body === undefined ? "GET" : "POST");
  const lines = [
    `curl ${isDefault ? "" : `-X ${method} `}"${baseUrl}${path}"`,
    `  -H "Authorization: Bearer ${key}"`,
  ];
  if (body !== undefined)
    lines.push('  -H "Content-Type: application/json"', `  -d '${jsonObject(body, 2)}'`);
  return lines.join(" \\\n");
}
