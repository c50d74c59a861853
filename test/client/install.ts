import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { loadClientFiles } from "../../src/browser-bundle/bundle.ts";
import { runProgram } from "../../trials/harness/child.ts";

/** Puts the files of the package where programs in the directory find it. */
export async function installClient(directory: string): Promise<void> {
  const target = join(directory, "node_modules/@petstore/client");
  for (const [name, text] of Object.entries(await loadClientFiles()))
    await Bun.write(join(target, name), text);
}

/** What a program prints, which must succeed. */
export async function run(command: string[], cwd: string, env: Record<string, string> = {}): Promise<string> {
  const { code, out, err } = await runProgram(command, { cwd, env });
  if (code !== 0) throw new Error(`${command.join(" ")}: exit code ${code}\n${out}${err}`);
  return out;
}

/** The type errors of the TypeScript programs in the directory, in a strict project for browsers. */
export async function typeErrorsIn(
  directory: string,
  { include = ["*.ts"], module = "NodeNext" } = {},
): Promise<string> {
  const compilerOptions = {
    strict: true,
    exactOptionalPropertyTypes: true,
    noUncheckedIndexedAccess: true,
    skipLibCheck: false,
    noEmit: true,
    target: "ES2022",
    module,
    moduleResolution: module,
    lib: ["ES2022", "DOM"],
    types: [],
  };
  writeFileSync(join(directory, "tsconfig.json"), JSON.stringify({ compilerOptions, include }));
  const { code, out, err } = await runProgram([process.execPath, "check", "--no-script"], { cwd: directory });
  return code === 0 ? "" : out + err;
}
