import { writeFile } from "node:fs/promises";
import openapiTypescript, { astToString } from "openapi-typescript";
import ts from "typescript";

const bigint = ts.factory.createKeywordTypeNode(ts.SyntaxKind.BigIntKeyword);
const types = await openapiTypescript(new URL("http://127.0.0.1:8080/openapi.json"), {
  transform: ({ format }) => (format === "int64" ? bigint : undefined),
});
await writeFile("schema.ts", astToString(types));
