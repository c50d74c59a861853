import { mkdtempSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { runProgram } from "../../../trials/harness/child.ts";
import { temporaryDirectory } from "../../../trials/harness/cleanup.ts";
import { executable, PYTHON } from "../../../trials/harness/programs.ts";
import type { Example } from "../../../src/docs-site/browser/programs.ts";
import { type ExampleContext, inContext } from "../../../src/docs-site/examples.ts";
import type { ExampleLanguage } from "../../../src/docs-site/page-data.ts";
import { examplesIn } from "../../../src/docs-site/page-content.ts";
import { GUIDE_SOURCES } from "../../../src/docs-site/sources.ts";
import { installClient, typeErrorsIn } from "../../client/install.ts";

const directory = temporaryDirectory("examples");
writeFileSync(join(directory, "package.json"), '{"type":"module"}');
await installClient(directory);

/** What runs a file of a language, and how its name ends. */
const RUNNERS: Readonly<Record<ExampleLanguage, readonly [extension: string, ...command: string[]]>> = {
  curl: ["sh", "bash", "-e"],
  typescript: ["ts", process.execPath],
  fetch: ["js", process.execPath],
  python: ["py", executable(PYTHON)],
};

/** An example and the API key that its environment has. */
export type Program = Example & { readonly key: string };

/** What an example prints, as for a reader who has copied it into a file of its own; if it fails, its errors too. */
export async function outputOf({ language, code: text, key }: Program): Promise<string> {
  const [extension, ...command] = RUNNERS[language];
  const cwd = mkdtempSync(join(directory, `${language}-`));
  const file = join(cwd, `example.${extension}`);
  writeFileSync(file, text);
  // curl writes its progress to standard error.
  const { code, out, err } = await runProgram([...command, file], { cwd, env: { PETSTORE_KEY: key } });
  return code === 0 ? out : `exit code ${code}\n${out}${err}`;
}

/** The type errors of TypeScript programs, by the name of their file. */
export function typeErrorsOf(programs: Readonly<Record<string, string>>): Promise<string> {
  const cwd = mkdtempSync(join(directory, "types-"));
  for (const [name, code] of Object.entries(programs)) writeFileSync(join(cwd, `${name}.ts`), code);
  return typeErrorsIn(cwd);
}

/** The examples of the guides by their names. */
export function guideExamples(context: ExampleContext): ReadonlyMap<string, readonly Program[]> {
  const markdown = inContext(Object.values(GUIDE_SOURCES).join("\n"), context);
  const blocks = markdown.matchAll(/<!-- example-([a-z-]+) -->\n([\s\S]*?)<!-- \/example-\1 -->/g);
  return new Map(
    Array.from(blocks, ([, name = "", text = ""]) => [name, withKey(context.key, examplesIn(text))]),
  );
}

export function withKey(key: string, examples: readonly Example[]): readonly Program[] {
  return examples.map((example) => ({ ...example, key }));
}

export function only<E extends Example>(language: ExampleLanguage, examples: readonly E[]): E {
  const example = examples.find((each) => each.language === language);
  if (example === undefined) throw new Error(`no example in ${language}`);
  return example;
}
