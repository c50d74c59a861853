import { readFile } from "node:fs/promises";
import converter from "openapi-to-postmanv2";

/** Prints the collection that Postman makes of the document. */
const data = await readFile("openapi.json", "utf8");
converter.convertV2(
  { type: "string", data },
  { parametersResolution: "Example" },
  (error, { result, reason, output }) => {
    if (error || !result) throw new Error(reason, { cause: error });
    process.stdout.write(JSON.stringify(output[0].data));
  },
);
