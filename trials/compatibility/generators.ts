/*
 * Runs `npm run generators`: generators and linters from npm against the document of a server that this command starts.
 * It needs the npm registry.
 */

import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type ExampleContext, inContext } from "../../src/docs-site/examples.ts";
import { temporaryDirectory } from "../harness/cleanup.ts";
import { runCommand, text } from "../harness/command-line.ts";
import { createKey, startPetstore } from "../harness/petstore.ts";
import {
  type Checks,
  expectEqual,
  GENERATOR_PACKAGES as PACKAGES,
  installTools,
  run,
  runChecks,
  type Tools,
} from "./tools.ts";

/** The directory of programs that use generated code; they are copied next to it. */
const PROGRAMS = join(import.meta.dir, "programs");

/** Copies the programs, which the documentation shows, with the address and the key of the server. */
async function prepare(workspace: string, { baseUrl, key }: ExampleContext): Promise<void> {
  mkdirSync(workspace, { recursive: true });
  for (const name of readdirSync(PROGRAMS)) {
    const text = readFileSync(join(PROGRAMS, name), "utf8");
    writeFileSync(join(workspace, name), inContext(text, { baseUrl, key }));
  }
  const response = await fetch(new URL("/openapi.json", baseUrl));
  writeFileSync(join(workspace, "openapi.json"), await response.text());
}

const linters = (tools: Tools, cwd: string): Checks => ({
  async "@redocly/cli"() {
    const { out } = await tools.run("redocly", ["lint", "openapi.json", "--format", "json"], { cwd });
    const { totals } = JSON.parse(out.slice(out.indexOf("{")));
    expectEqual("the number of problems", totals, { errors: 0, warnings: 0, ignored: 0 });
    return "recommended rules: no errors, no warnings";
  },
  async "@stoplight/spectral-cli"() {
    const flags = "--ruleset spectral.yaml --fail-severity hint --format json --quiet".split(" ");
    const { out } = await tools.run("spectral", ["lint", "openapi.json", ...flags], { cwd });
    expectEqual("the list of problems", JSON.parse(out), []);
    return "spectral:oas: no errors, warnings or hints";
  },
  async "@apidevtools/swagger-parser"() {
    return (await tools.runScript("swagger-parser.mjs", { cwd })).out.trim();
  },
});

function generators(tools: Tools, cwd: string, key: string): Checks {
  const runs = async (program: string, generated: Promise<unknown>) => {
    await generated;
    expectReport((await run([process.execPath, `${program}.ts`], { cwd, env: { PETSTORE_KEY: key } })).out);
    return "generates, runs, int64 is bigint with all digits";
  };
  return {
    "openapi-typescript with openapi-fetch": () =>
      runs("openapi-fetch", tools.runScript("openapi-typescript.mjs", { cwd })),
    "@hey-api/openapi-ts": () => runs("hey-api", tools.run("openapi-ts", [], { cwd })),
    orval: () => runs("orval", tools.run("orval", [], { cwd })),
    async typescript() {
      await tools.run("tsc", ["-p", "."], { cwd });
      return "no type errors in the generated code and the programs that use it";
    },
  };
}

/** Sends every request of the collection that Postman makes of the document, in its order, to a server without data. */
const postman = (tools: Tools, cwd: string): Checks => ({
  async "openapi-to-postmanv2 with newman"() {
    const { out } = await tools.runScript("postman.mjs", { cwd });
    writeFileSync(join(cwd, "collection.json"), out);
    await using server = await startServer();
    const variables = [`baseUrl=${server.baseUrl}`, `bearerToken=${server.key}`];
    const flags = variables.flatMap((variable) => ["--env-var", variable]);
    const report = ["--reporters", "json", "--reporter-json-export", "report.json"];
    await tools.run("newman", ["run", "collection.json", ...flags, ...report], { cwd });
    const { run }: NewmanReport = JSON.parse(readFileSync(join(cwd, "report.json"), "utf8"));
    const statuses = run.executions.map(({ item, response }) => [item.name, response?.code ?? 0] as const);
    const failed = statuses.filter(([, status]) => status < 200 || status >= 300);
    expectEqual("the list of requests that fail", failed, []);
    return `${statuses.length} requests work at the first send`;
  },
});

/** What newman reports of the requests that it has sent. */
interface NewmanReport {
  readonly run: {
    readonly executions: readonly {
      readonly item: { readonly name: string };
      readonly response?: { readonly code: number };
    }[];
  };
}

async function startServer(): Promise<ExampleContext & AsyncDisposable> {
  const data = ["--data", temporaryDirectory("generators")];
  const { url, stop } = await startPetstore([...data, "--port", "0", "--admin-address", "off"]);
  const { key } = await createKey(data);
  return { baseUrl: url, key, [Symbol.asyncDispose]: async () => void (await stop()) };
}

/** Checks the report that programs/report.ts writes. */
function expectReport(text: string): void {
  const { pet, pets, completed, errorCode } = JSON.parse(text);
  expectEqual("the new pet's name", pet.name, "Mia");
  // JSON.parse rounds the number, so the digits are compared as text: those of the new pet and of two in a list.
  expectEqual("the number of exact integers", text.split('"categoryId":9007199254740993').length - 1, 3);
  expectEqual("the number of pets by identifier", pets.length, 2);
  expectEqual("the order", [completed.petId, completed.status], [pet.id, "completed"]);
  expectEqual("the code of the error", errorCode, "order_not_found");
}

await runCommand({
  name: "generators",
  flags: { tools: text },
  maxMinutes: 20,
  async main({ tools: directory }) {
    const tools = await installTools(PACKAGES, directory);
    await using server = await startServer();
    const workspace = join(tools.directory, "workspace");
    await prepare(workspace, server);
    const checks = {
      ...linters(tools, workspace),
      ...postman(tools, workspace),
      ...generators(tools, workspace, server.key),
    };
    return await runChecks(PACKAGES, checks);
  },
});
