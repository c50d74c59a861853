import { afterAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { executable, FISH, ZSH } from "../../../trials/harness/programs.ts";
import { loadCommands } from "../../../src/cli/program.ts";
import { cleanUp, InProcessCli, temporaryDirectory } from "../../cli/cli.ts";

const COMMANDS = await loadCommands();

// A busy machine takes long.
setDefaultTimeout(120_000);
afterAll(cleanUp);

const cli = new InProcessCli();

async function scriptFor(shell: string): Promise<string> {
  const { code, out, err } = await cli.run(["completion", shell]);
  expect({ code, err }).toEqual({ code: 0, err: "" });
  const file = join(temporaryDirectory(), `petstore.${shell}`);
  writeFileSync(file, out);
  return file;
}

/** A folder with one file and one folder, for paths. */
function folder(): string {
  const path = temporaryDirectory();
  writeFileSync(join(path, "cert.pem"), "");
  mkdirSync(join(path, "certificates"));
  return path;
}

async function output(command: string[], cwd = folder()): Promise<string[]> {
  const child = Bun.spawn(command, { cwd, stdin: "ignore", stdout: "pipe", stderr: "pipe" });
  const [out, err, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
  expect({ code, err }).toEqual({ code: 0, err: "" });
  return out.split("\n").filter((line) => line !== "");
}

const KEYS = COMMANDS.flatMap(({ name }) => (name.startsWith("keys ") ? name.slice(5) : []));

/** What is typed, and what the shell must offer; the last word is being completed. */
const CASES: readonly [line: string, expected: readonly string[]][] = [
  ["petstore ser", ["serve"]],
  ["petstore keys ", KEYS],
  ["petstore help keys cr", ["create"]],
  ["petstore keys create --pl", ["--plan"]],
  ["petstore keys create --plan ", ["free", "pro", "business", "enterprise"]],
  ["petstore keys create --json --plan b", ["business"]],
  ["petstore --env staging keys li", ["list"]],
  ["petstore keys set-plan 7 p", ["pro"]],
  ["petstore completion ", ["bash", "zsh", "fish"]],
  ["petstore orders list --status pl", ["placed"]],
  ["petstore pets list --status a", ["available"]],
  ["petstore serve --tls-cert ce", ["cert.pem", "certificates/"]],
  ["petstore serve --data ce", ["certificates/"]],
];

const WITHOUT_SLASHES = CASES.map(([line, expected]) => [
  line,
  expected.map((word) => word.replace(/\/$/, "")).toSorted(),
]);

/** Ends what was offered for a line; no candidate looks like it. */
const END = "-----";

/** One shell completes all lines: `script` is the command for a line. Gives each line with what was offered. */
async function offers(
  shell: readonly string[],
  lines: readonly string[],
  script: (line: string) => string,
): Promise<[line: string, offered: string[]][]> {
  const text = lines.map((line) => `${script(line)}\necho ${END}\n`).join("");
  const parts = (await output([...shell, text])).join("\n").split(END);
  return lines.map((line, i) => [
    line,
    (parts[i] ?? "")
      .split("\n")
      .filter((word) => word !== "")
      .toSorted(),
  ]);
}

const LINES = CASES.map(([line]) => line);
/** As an array of the shell. */
const words = (line: string) =>
  `(${line
    .split(" ")
    .map((word) => `'${word}'`)
    .join(" ")})`;

describe("bash", () => {
  async function completions(lines: readonly string[]) {
    const shell = ["bash", "-c", 'source "$0"; eval "$1"', await scriptFor("bash")];
    return offers(shell, lines, (line) => {
      const last = line.split(" ").length - 1;
      return `COMP_WORDS=${words(line)}; COMP_CWORD=${last}; COMPREPLY=(); _petstore; printf '%s\\n' "\${COMPREPLY[@]}"`;
    });
  }

  test("offers what fits", async () => {
    // Bash itself adds the slash of a folder.
    expect<unknown>(await completions(LINES)).toEqual(WITHOUT_SLASHES);
  });

  test("the first word is every command and group; a value that can be anything gets no candidates", async () => {
    const firstWords = new Set(COMMANDS.map(({ name }) => name.split(" ")[0] ?? ""));
    expect(await completions(["petstore ", "petstore serve --port "])).toEqual([
      ["petstore ", [...firstWords, "help", "--version"].toSorted()],
      ["petstore serve --port ", []],
    ]);
  });

  test("every option of every command is offered", async () => {
    const expected = COMMANDS.map(({ name, options }): [string, string[]] => [
      `petstore ${name} --`,
      [...Object.keys(options).map((flag) => `--${flag}`), "--help"].toSorted(),
    ]);
    expect(await completions(expected.map(([line]) => line))).toEqual(expected);
  });
});

test("fish offers what fits", async () => {
  const lines = LINES.filter((line) => !line.includes("help "));
  const shell = [executable(FISH), "--no-config", "-C", `source ${await scriptFor("fish")}`, "-c"];
  const offered = await offers(shell, lines, (line) => `complete --do-complete ${JSON.stringify(line)}`);
  const names = offered.map(([line, each]) => [line, each.map((word) => word.split("\t")[0]).toSorted()]);
  const expected = CASES.filter(([line]) => lines.includes(line));
  expect<unknown>(names).toEqual(expected.map(([line, each]) => [line, each.toSorted()]));
});

test("zsh offers what fits", async () => {
  // The functions of zsh's completion system are replaced by ones that print what they are given.
  const capture = `
    compdef() { }
    compadd() { shift; print -l -- "$@" }
    _describe() { print -l -- "\${(@)candidates%%:*}" }
    _files() { [[ $1 == -/ ]] && print -l -- *(/) || print -l -- * }
    _message() { }
    source $0
    eval $1
  `;
  const shell = [executable(ZSH), "--no-rcs", "-c", capture, await scriptFor("zsh")];
  const offered = await offers(shell, LINES, (line) => {
    const count = line.split(" ").length;
    return `words=${words(line)}; CURRENT=${count}; _petstore`;
  });
  // Zsh itself leaves out what does not begin with the word.
  const matching = offered.map(([line, each]) => {
    const last = line.split(" ").at(-1) ?? "";
    return [line, each.filter((word) => word.startsWith(last))];
  });
  expect<unknown>(matching).toEqual(WITHOUT_SLASHES);
});
