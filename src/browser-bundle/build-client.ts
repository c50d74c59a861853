/*
 * Makes the files of the package `@petstore/client` from `src/client`, and writes them to standard output as JSON.
 * Nothing in them depends on a server. It runs in a process of its own, as `build.ts` does.
 */

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { transformSync } from "oxc-transform";
import type { ClientFiles } from "./bundle.ts";

const ROOT = join(import.meta.dir, "../..");
const read = (path: string) => readFileSync(join(ROOT, path), "utf8");

const { version, license, repository, engines } = JSON.parse(read("package.json"));

function manifest(): string {
  const fields = {
    name: "@petstore/client",
    version,
    description: "Client of the Petstore API: exact 64-bit integers, safe retries, rate limits",
    license,
    repository,
    type: "module",
    sideEffects: false,
    exports: { ".": { types: "./index.d.ts", default: "./index.js" }, "./package.json": "./package.json" },
    types: "./index.d.ts",
    engines: { node: engines.node },
  };
  return `${JSON.stringify(fields, null, 2)}\n`;
}

const files: Record<string, string> = {
  "package.json": manifest(),
  "README.md": read("src/client/README.md").replace("/client.tgz", `/client-${version}.tgz`),
  LICENSE: read("LICENSE"),
};
for (const name of readdirSync(join(ROOT, "src/client")).toSorted()) {
  if (!name.endsWith(".ts")) continue;
  const { code, map, declaration, errors } = transformSync(name, read(`src/client/${name}`), {
    sourcemap: true,
    target: "es2022",
    typescript: { declaration: {}, rewriteImportExtensions: "rewrite" },
  });
  if (errors.length > 0 || declaration === undefined || map === undefined)
    throw new Error(`${name}: ${errors.map(({ message }) => message).join(" ")}`);
  const module = name.replace(/\.ts$/, "");
  files[`${module}.js`] = `${code}//# sourceMappingURL=${module}.js.map\n`;
  files[`${module}.js.map`] = JSON.stringify(map);
  files[`${module}.d.ts`] = declaration.replaceAll(/(?<= from "\.\/[\w-]+)\.ts"/g, '.js"');
}
await Bun.write(Bun.stdout, JSON.stringify(files satisfies ClientFiles));
