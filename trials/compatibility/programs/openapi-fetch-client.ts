import createClient from "openapi-fetch";
import { exactFetch, writeJson } from "./exact-json.ts";
import type { paths } from "./schema.ts";

export const api = createClient<paths>({
  baseUrl: "http://127.0.0.1:8080/v1",
  headers: { Authorization: `Bearer ${process.env["PETSTORE_KEY"]}` },
  fetch: exactFetch,
  bodySerializer: writeJson,
  querySerializer: { array: { style: "form", explode: false } },
});
