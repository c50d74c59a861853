import { readFile, writeFile } from "node:fs/promises";
import openapiTypescript, { astToString } from "openapi-typescript";
import ts from "typescript";

/**
 * The command line of openapi-typescript has no option for bigint, so its function is called, which takes a
 * transformation of schemas.
 */
const bigint = ts.factory.createKeywordTypeNode(ts.SyntaxKind.BigIntKeyword);
const document = await readFile("openapi.json", "utf8");
const types = await openapiTypescript(document, {
  transform: ({ format }) => (format === "int64" ? bigint : undefined),
});
await writeFile("openapi-typescript/schema.ts", astToString(types));
