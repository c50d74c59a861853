import { readFileSync } from "node:fs";
import { join } from "node:path";
import { GENERATOR_PACKAGES } from "../trials/compatibility/tools.ts";

/** A generator of clients: its packages, what generates, and the files in trials/compatibility/programs. */
interface Generator {
  readonly packages: readonly (keyof typeof GENERATOR_PACKAGES)[];
  /** Packages of which the command needs no version. */
  readonly needs?: readonly string[];
  readonly command: string;
  /** How a program uses what was generated. */
  readonly use: string;
  readonly files: readonly string[];
}

const GENERATORS: readonly Generator[] = [
  {
    packages: ["@hey-api/openapi-ts"],
    command: "npx openapi-ts",
    use: "Import the operations from `hey-api-client.ts`.",
    files: ["openapi-ts.config.mjs", "hey-api-client.ts"],
  },
  {
    packages: ["orval"],
    command: "npx orval",
    use: "Pass `options` to every operation of `orval/petstore.ts`.",
    files: ["orval.config.mjs", "orval-client.ts"],
  },
  {
    packages: ["openapi-typescript", "openapi-fetch"],
    needs: ["typescript"],
    command: "node openapi-typescript.mjs",
    use: 'Call `api.GET("/pets")` and so on.',
    files: ["openapi-typescript.mjs", "openapi-fetch-client.ts"],
  },
];

/** Everything to paste, one section for each generator. */
export function generatorSections(): string {
  return GENERATORS.map(({ packages, needs = [], command, use, files }) => {
    const names = [...packages.map((name) => `${name}@${GENERATOR_PACKAGES[name]}`), ...needs];
    const install = `npm install -D ${names.join(" ")}\n${command}`;
    const title = packages.map((name) => `\`${name}\``).join(" with ");
    return [`## ${title}`, use, `\`\`\`sh\n${install}\n\`\`\``, ...files.map(fileBlock)].join("\n\n");
  }).join("\n\n");
}

export function exactJson(): string {
  return fileBlock("exact-json.ts");
}

/** A file as a code block that begins with its name, without what is for our linter. */
function fileBlock(name: string): string {
  const text = readFileSync(join(import.meta.dir, "../trials/compatibility/programs", name), "utf8");
  const syntax = name.endsWith(".ts") ? "ts" : "js";
  return `\`\`\`${syntax}\n// ${name}\n${text.replace(/^\/\/ oxlint-.*\n/m, "").trimEnd()}\n\`\`\``;
}
