/**
 * `npm run generators`: generators, linters and newman from npm against the document and the Postman collection of a
 * server that this command starts. Needs the npm registry.
 */
import { cpSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryFolder } from "../harness/cleanup.ts";
import { runCommand, text } from "../harness/command-line.ts";
import { createKey, startPetstore } from "../harness/petstore.ts";
import {
  type Check,
  expectEqual,
  GENERATOR_PACKAGES as PACKAGES,
  run,
  runChecks,
  succeed,
  Tools,
} from "./tools.ts";

interface Server {
  readonly url: string;
  readonly key: string;
}

/** The programs in this folder use generated code; they are copied next to it. */
const PROGRAMS = join(import.meta.dir, "programs");

await runCommand({
  name: "generators",
  flags: { tools: text },
  maxMinutes: 20,
  async main({ tools: folder }) {
    const tools = await Tools.install(PACKAGES, folder);
    const data = ["--data", temporaryFolder("generators")];
    const { url, stop } = await startPetstore([...data, "--port", "0", "--admin-address", "off"]);
    const { key } = await createKey(data);
    const workspace = join(tools.folder, "workspace");
    await prepare(workspace, url);
    const exitCode = await runChecks([
      // First: the requests of the collection use pet 1 and order 1.
      ...linters(tools, workspace),
      ...generators(tools, workspace, { url, key }),
    ]);
    await stop();
    return exitCode;
  },
});

async function prepare(workspace: string, url: string): Promise<void> {
  cpSync(PROGRAMS, workspace, { recursive: true });
  mkdirSync(join(workspace, "openapi-typescript"), { recursive: true });
  const response = await fetch(new URL("/openapi.json", url));
  writeFileSync(join(workspace, "openapi.json"), await response.text());
}

function linters(tools: Tools, cwd: string): Check[] {
  return [
    {
      name: `@redocly/cli ${PACKAGES["@redocly/cli"]}`,
      async run() {
        const out = succeed(
          await tools.run("redocly", ["lint", "openapi.json", "--format", "json"], { cwd }),
        );
        const { totals } = JSON.parse(out.slice(out.indexOf("{")));
        expectEqual("the number of problems", totals, { errors: 0, warnings: 0, ignored: 0 });
        return "recommended rules: no errors, no warnings";
      },
    },
    {
      name: `@stoplight/spectral-cli ${PACKAGES["@stoplight/spectral-cli"]}`,
      async run() {
        const flags = "--ruleset spectral.yaml --fail-severity hint --format json --quiet".split(" ");
        const out = succeed(await tools.run("spectral", ["lint", "openapi.json", ...flags], { cwd }));
        expectEqual("the list of problems", JSON.parse(out), []);
        return "spectral:oas: no errors, warnings or hints";
      },
    },
    {
      name: `@apidevtools/swagger-parser ${PACKAGES["@apidevtools/swagger-parser"]}`,
      run: async () => succeed(await tools.runScript("swagger-parser.mjs", [], { cwd })).trim(),
    },
  ];
}

function generators(tools: Tools, cwd: string, { url, key }: Server): Check[] {
  const generate = {
    "openapi-fetch": () => tools.runScript("openapi-typescript.mjs", [], { cwd }),
    "hey-api": () => tools.run("openapi-ts", ["-f", "hey-api.config.mjs"], { cwd }),
    orval: () => tools.run("orval", ["--config", "orval.config.mjs"], { cwd, env: { API_URL: url } }),
  };
  const names = {
    "openapi-fetch": `openapi-typescript ${PACKAGES["openapi-typescript"]} with openapi-fetch ${PACKAGES["openapi-fetch"]}`,
    "hey-api": `@hey-api/openapi-ts ${PACKAGES["@hey-api/openapi-ts"]}`,
    orval: `orval ${PACKAGES.orval}`,
  };
  const programs = ["openapi-fetch", "hey-api", "orval"] as const;
  return [
    ...programs.map((program) => ({
      name: names[program],
      async run() {
        succeed(await generate[program]());
        expectReport(succeed(await run([process.execPath, `${program}.ts`, url, key], { cwd })));
        return "generates, runs, int64 is bigint with all digits";
      },
    })),
    {
      name: `typescript ${PACKAGES.typescript}`,
      async run() {
        succeed(await tools.run("tsc", ["-p", "."], { cwd }));
        return "no type errors in the generated code and the programs that use it";
      },
    },
  ];
}

/** See programs/report.ts. */
function expectReport(text: string): void {
  const { pet, pets, completed, errorCode } = JSON.parse(text);
  expectEqual("the new pet's name", pet.name, "Mia");
  // JSON.parse rounds the number, so the digits are compared as text: of the new pet and of two in a list.
  expectEqual("the number of exact integers", text.split('"categoryId":9007199254740993').length - 1, 3);
  expectEqual("the number of pets by identifier", pets.length, 2);
  expectEqual("the order", [completed.petId, completed.status], [pet.id, "completed"]);
  expectEqual("the code of the error", errorCode, "order_not_found");
}
