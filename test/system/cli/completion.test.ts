import { afterAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { executable, FISH, ZSH } from "../../../harness/programs.ts";
import { loadCommands } from "../../../src/cli/commands.ts";
import { cleanUp, InProcessCli, temporaryDirectory } from "../../cli/cli.ts";

const COMMANDS = await loadCommands();

// A shell may have to be installed.
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

const GROUPS = ["keys", "pets", "orders"];
const FIRST_WORDS = [...new Set(COMMANDS.map(({ name }) => name.split(" ")[0] ?? ""))];
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

describe("bash", () => {
  async function completions(line: string): Promise<string[]> {
    const words = line.split(" ");
    const script = `source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _petstore; printf '%s\\n' "\${COMPREPLY[@]}"`;
    const offered = await output(["bash", "-c", script, "bash", await scriptFor("bash"), ...words]);
    return offered;
  }

  test("the script has no syntax error", async () => {
    expect(await output(["bash", "-n", await scriptFor("bash")])).toEqual([]);
  });

  test.each(CASES)("%p", async (line, expected) => {
    // Bash itself adds the slash of a folder.
    const names = expected.map((word) => word.replace(/\/$/, ""));
    expect((await completions(line)).toSorted()).toEqual(names.toSorted());
  });

  test("the first word is every command and group", async () => {
    expect((await completions("petstore ")).toSorted()).toEqual(
      [...FIRST_WORDS, "help", "--version"].toSorted(),
    );
    expect(FIRST_WORDS).toEqual(expect.arrayContaining(GROUPS));
  });

  test("every option of every command is offered", async () => {
    for (const { name, options } of COMMANDS) {
      const flags = [...Object.keys(options).map((flag) => `--${flag}`), "--help"];
      expect((await completions(`petstore ${name} --`)).toSorted()).toEqual(flags.toSorted());
    }
  });

  test("a value that can be anything gets no candidates", async () => {
    expect(await completions("petstore serve --port ")).toEqual([]);
  });
});

describe("fish", () => {
  test("the script has no syntax error", async () => {
    expect(await output([executable(FISH), "--no-execute", await scriptFor("fish")])).toEqual([]);
  });

  test.each(CASES.filter(([line]) => !line.includes("help ")))("%p", async (line, expected) => {
    const script = `source ${await scriptFor("fish")}; complete --do-complete ${JSON.stringify(line)}`;
    const offered = await output([executable(FISH), "--no-config", "-c", script]);
    expect(offered.map((each) => each.split("\t")[0] ?? "").toSorted()).toEqual(expected.toSorted());
  });
});

describe("zsh", () => {
  test("the script has no syntax error", async () => {
    expect(await output([executable(ZSH), "--no-exec", await scriptFor("zsh")])).toEqual([]);
  });

  /** The functions of zsh's completion system are replaced by ones that print what they are given. */
  const CAPTURE = `
    compdef() { }
    compadd() { shift; print -l -- "$@" }
    _describe() { print -l -- "\${(@)candidates%%:*}" }
    _files() { [[ $1 == -/ ]] && print -l -- *(/) || print -l -- * }
    _message() { }
    source $1
    shift
    words=("$@")
    CURRENT=$#
    _petstore
  `;

  test.each(CASES)("%p", async (line, expected) => {
    const script = await scriptFor("zsh");
    const argv = ["--no-rcs", "-c", CAPTURE, "zsh", script, ...line.split(" ")];
    const offered = await output([executable(ZSH), ...argv]);
    const last = line.split(" ").at(-1) ?? "";
    // Zsh itself leaves out what does not begin with the word.
    const matching = offered.filter((word) => word.startsWith(last));
    expect(matching.toSorted()).toEqual(expected.map((word) => word.replace(/\/$/, "")).toSorted());
  });
});
