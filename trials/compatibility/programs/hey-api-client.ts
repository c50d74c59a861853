import { quoteInt64, writeJson } from "./exact-json.ts";
import { client } from "./hey-api/client.gen.ts";

client.setConfig({
  baseUrl: "http://127.0.0.1:8080/v1",
  auth: process.env["PETSTORE_KEY"] ?? "",
  bodySerializer: writeJson,
});
client.interceptors.response.use(async (response) => {
  if (!response.ok) return response;
  return new Response(quoteInt64(await response.text()), response);
});

export * from "./hey-api/sdk.gen.ts";
