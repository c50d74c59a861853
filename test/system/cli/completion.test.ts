import { afterAll, expect, test } from "bun:test";
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { runProgram } from "../../../trials/harness/child.ts";
import { BASH, executable, FISH, ZSH } from "../../../trials/harness/programs.ts";
import { cleanUp, EXECUTABLE, InProcessCli, cliDirectory } from "../../cli/cli.ts";

afterAll(cleanUp);

/** What is typed, and what the shell must offer; the last word is being completed. */
const CASES: readonly [line: string, expected: readonly string[]][] = [
  ["petstore ser", ["serve", "servers"]],
  ["petstore keys create --plan ", ["business", "enterprise", "free", "pro"]],
  ["petstore --env staging keys li", ["list"]],
  ["petstore serve --port ", []],
  ["petstore serve --tls-cert ce", ["cert.pem", "certificates"]],
  ["petstore serve --data ce", ["certificates"]],
];

/** The words as an array of the shell. */
const words = (line: string) => `(${line.replace(/[^ ]*/g, "'$&'")})`;

/** The functions of zsh's completion system are replaced by ones that print what they are given. */
const ZSH_FUNCTIONS = `
  compdef() { }
  _describe() { print -l -- "\${(@)candidates%%:*}" }
  _files() { [[ $1 == -/ ]] && print -l -- *(/) || print -l -- * }`;

/** How each of them prints what is offered for a line, one on each line. */
const SHELLS = {
  bash: {
    program: BASH,
    flags: ["--norc", "-c"],
    before: "",
    print: (line: string) =>
      `COMP_WORDS=${words(line)}; COMP_CWORD=${line.split(" ").length - 1}; COMPREPLY=(); _petstore; printf '%s\\n' "\${COMPREPLY[@]}"`,
  },
  zsh: {
    program: ZSH,
    flags: ["--no-rcs", "-c"],
    before: ZSH_FUNCTIONS,
    print: (line: string) => `words=${words(line)}; CURRENT=${line.split(" ").length}; _petstore`,
  },
  fish: {
    program: FISH,
    flags: ["--no-config", "-c"],
    before: "",
    print: (line: string) => `complete --do-complete ${JSON.stringify(line)}`,
  },
};

test.each(Object.entries(SHELLS))("%s offers what fits", async (name, { program, flags, before, print }) => {
  const directory = cliDirectory();
  const { out: script } = await new InProcessCli().run(["completion", name]);
  writeFileSync(join(directory, "script"), script);
  const cwd = join(directory, "work");
  mkdirSync(join(cwd, "certificates"), { recursive: true });
  writeFileSync(join(cwd, "cert.pem"), "");
  const lines = CASES.map(([line]) => `${print(line)}\necho -----\n`).join("");
  const commands = `${before}\nsource ${join(directory, "script")}\n${lines}`;
  const env = { PATH: `${dirname(EXECUTABLE)}:${process.env["PATH"]}` };
  const { code, out: text, err } = await runProgram([executable(program), ...flags, commands], { cwd, env });
  expect({ code, err }).toEqual({ code: 0, err: "" });
  const offered = text.split("-----\n").map((part) => {
    const found = part.split("\n").map((each) => each.split("\t")[0]?.replace(/\/$/, "") ?? "");
    return found.filter((word) => word !== "").toSorted();
  });
  expect<unknown>(CASES.map(([line], i) => [line, offered[i]])).toEqual(CASES);
});
