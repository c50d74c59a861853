/**
 * Runs `npm run generators`: generators and linters from npm against the document of a server that this command starts.
 * It needs the npm registry.
 */
import { cpSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
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

async function prepare(workspace: string, url: string): Promise<void> {
  cpSync(PROGRAMS, workspace, { recursive: true });
  mkdirSync(join(workspace, "openapi-typescript"), { recursive: true });
  const response = await fetch(new URL("/openapi.json", url));
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

function generators(tools: Tools, cwd: string, { url, key }: { url: string; key: string }): Checks {
  const runs = async (program: string, generated: Promise<unknown>) => {
    await generated;
    expectReport((await run([process.execPath, `${program}.ts`, url, key], { cwd })).out);
    return "generates, runs, int64 is bigint with all digits";
  };
  return {
    "openapi-typescript with openapi-fetch": () =>
      runs("openapi-fetch", tools.runScript("openapi-typescript.mjs", { cwd })),
    "@hey-api/openapi-ts": () =>
      runs("hey-api", tools.run("openapi-ts", ["-f", "hey-api.config.mjs"], { cwd })),
    orval: () =>
      runs("orval", tools.run("orval", ["--config", "orval.config.mjs"], { cwd, env: { API_URL: url } })),
    async typescript() {
      await tools.run("tsc", ["-p", "."], { cwd });
      return "no type errors in the generated code and the programs that use it";
    },
  };
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
    const data = ["--data", temporaryDirectory("generators")];
    const { url, stop } = await startPetstore([...data, "--port", "0", "--admin-address", "off"]);
    const { key } = await createKey(data);
    const workspace = join(tools.directory, "workspace");
    await prepare(workspace, url);
    const checks = { ...linters(tools, workspace), ...generators(tools, workspace, { url, key }) };
    const exitCode = await runChecks(PACKAGES, checks);
    await stop();
    return exitCode;
  },
});
