import { mkdtempSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { runProgram } from "../../../trials/harness/child.ts";
import { temporaryFolder } from "../../../trials/harness/cleanup.ts";
import { executable, PYTHON } from "../../../trials/harness/programs.ts";
import type { Example } from "../../../src/docs-site/browser/programs.ts";
import { type ExampleContext, inContext } from "../../../src/docs-site/examples.ts";
import type { ExampleLanguage } from "../../../src/docs-site/page-data.ts";
import { blocksOf } from "../../../src/docs-site/markdown.ts";
import { GUIDE_SOURCES } from "../../../src/docs-site/sources.ts";
import { installClient } from "../../client/install.ts";

/** curl writes its progress to standard error. */
type ExampleRun = Awaited<ReturnType<typeof runProgram>>;

/** Runs examples as a reader would who has copied each into a file of its own. */
export class ExampleRunner {
  readonly #folder = temporaryFolder("examples");
  readonly #python = new PythonProcess();

  static async start(): Promise<ExampleRunner> {
    const runner = new ExampleRunner();
    writeFileSync(join(runner.#folder, "package.json"), '{"type":"module"}');
    await installClient(runner.#folder);
    return runner;
  }

  run({ language, code }: Example): Promise<ExampleRun> {
    const cwd = mkdtempSync(join(this.#folder, `${language}-`));
    const file = join(cwd, `example.${EXTENSIONS[language]}`);
    writeFileSync(file, code);
    if (language === "python") return this.#python.run(file);
    return runProgram([...(language === "curl" ? ["bash", "-e"] : [process.execPath]), file], { cwd });
  }

  /** What the example prints; if it fails, its errors too. */
  async outputOf(example: Example): Promise<string> {
    const { code, out, err } = await this.run(example);
    return code === 0 ? out : `exit code ${code}\n${out}${err}`;
  }

  /** The type errors of TypeScript programs, by the name of their file, in a strict project for browsers. */
  async typeErrorsOf(programs: Readonly<Record<string, string>>): Promise<string> {
    const cwd = mkdtempSync(join(this.#folder, "types-"));
    for (const [name, code] of Object.entries(programs)) writeFileSync(join(cwd, `${name}.ts`), code);
    const compilerOptions = {
      strict: true,
      exactOptionalPropertyTypes: true,
      noUncheckedIndexedAccess: true,
      noEmit: true,
      target: "ES2022",
      module: "NodeNext",
      moduleResolution: "NodeNext",
      lib: ["ES2022", "DOM"],
      types: [],
    };
    writeFileSync(join(cwd, "tsconfig.json"), JSON.stringify({ compilerOptions, include: ["*.ts"] }));
    const { code, out, err } = await runProgram([process.execPath, "check", "--no-script"], { cwd });
    return code === 0 ? "" : out + err;
  }

  stop(): void {
    this.#python.stop();
  }
}

const EXTENSIONS: Readonly<Record<ExampleLanguage, string>> = {
  curl: "sh",
  typescript: "ts",
  fetch: "js",
  python: "py",
};

/** run_examples.py. It runs one example after the other. */
class PythonProcess {
  readonly #child = Bun.spawn([executable(PYTHON), join(import.meta.dir, "run_examples.py")], {
    stdin: "pipe",
    stdout: "pipe",
    stderr: "inherit",
  });
  readonly #lines = linesOf(this.#child.stdout);
  #last: Promise<unknown> = Promise.resolve();

  run(file: string): Promise<ExampleRun> {
    const run = this.#last.then(async () => {
      this.#child.stdin.write(`${file}\n`);
      await this.#child.stdin.flush();
      const { value } = await this.#lines.next();
      if (value === undefined) throw new Error("python3 ended");
      const outcome: ExampleRun = JSON.parse(value);
      return outcome;
    });
    this.#last = run;
    return run;
  }

  stop(): void {
    this.#child.kill();
  }
}

async function* linesOf(stream: ReadableStream<Uint8Array>): AsyncGenerator<string, undefined> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const chunk of stream) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split("\n");
    rest = lines.pop() ?? "";
    yield* lines;
  }
  return undefined;
}

/** The examples of the guides by their names. */
export function guideExamples(context: ExampleContext): ReadonlyMap<string, readonly Example[]> {
  const markdown = inContext(Object.values(GUIDE_SOURCES).join("\n"), context);
  const blocks = markdown.matchAll(/<!-- example-([a-z-]+) -->\n([\s\S]*?)<!-- \/example-\1 -->/g);
  return new Map(
    [...blocks].map(([, name = "", text = ""]) => [
      name,
      blocksOf(text).flatMap((block) => (block.kind === "examples" ? block.examples : [])),
    ]),
  );
}

export function only(language: ExampleLanguage, examples: readonly Example[]): Example {
  const example = examples.find((each) => each.language === language);
  if (example === undefined) throw new Error(`no example in ${language}`);
  return example;
}
