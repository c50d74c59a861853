import { writeFile } from "node:fs/promises";
import openapiTypescript, { astToString } from "openapi-typescript";
import ts from "typescript";

const url = new URL("http://127.0.0.1:8080/openapi.json");
const { BigIntKeyword } = ts.SyntaxKind;
const bigint = ts.factory.createKeywordTypeNode(BigIntKeyword);
const types = await openapiTypescript(url, {
  transform: ({ format }) => (format === "int64" ? bigint : undefined),
});
await writeFile("schema.ts", astToString(types));
