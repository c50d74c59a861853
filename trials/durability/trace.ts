import { readFileSync } from "node:fs";

/** A system call that succeeded, with its arguments as strace prints them. */
export interface SystemCall {
  readonly name: string;
  readonly args: readonly Argument[];
  readonly result: number;
  /** The place among all beginnings and ends of calls. */
  readonly startedAt: number;
  readonly endedAt: number;
}

/** A text is the bytes of a string, everything else is a word. */
type Argument = Buffer | string;

const NAMES = [
  ..."openat open creat close dup dup2 dup3 fcntl lseek exit_group mkdir mkdirat rmdir".split(" "),
  ..."write pwrite64 writev pwritev pwritev2 ftruncate fallocate copy_file_range sendfile ioctl".split(" "),
  ..."fsync fdatasync rename renameat renameat2 link linkat unlink unlinkat sendto sendmsg".split(" "),
];

/** The prefix of a command whose calls are written to the file. The process of the command is that of the prefix. */
export function straceTo(strace: string, file: string): readonly string[] {
  const flags = ["-D", "-f", "-qq", "-xx", "-s", "33554432", "-e", "signal=none"];
  return [strace, ...flags, "-e", `trace=${NAMES.join()}`, "-o", file];
}

/** The same prefix, for a command whose syncs begin 20 ms late: what it shows meanwhile is in the record, too. */
export function withLateSyncs([strace = "", ...flags]: readonly string[]): readonly string[] {
  return [strace, "-e", "inject=fdatasync:delay_enter=20000", ...flags];
}

const STRING = /^"((?:\\x[0-9a-f]{2})*)"(\.\.\.)?/;

function argumentsIn(text: string): Argument[] {
  const found: Argument[] = [];
  for (let rest = text; rest !== "";) {
    const [string, hex = "", isCut] = STRING.exec(rest) ?? [];
    if (isCut) throw new Error("strace cut a string");
    // The braces of a list are left out: the strings in it are what matters.
    const [word = ""] = string === undefined ? (/^[^,"]*/.exec(rest) ?? []) : [string];
    if (string !== undefined) found.push(Buffer.from(hex.replaceAll("\\x", ""), "hex"));
    else if (word.trim() !== "") found.push(word.trim());
    rest = rest.slice(word.length).replace(/^,\s*/, "");
    if (word === "" && rest !== "" && !rest.startsWith('"')) rest = rest.slice(1);
  }
  return found;
}

const BEGUN = /^(\d+) +(\w+)\((.*?)(?: <unfinished \.\.\.>|\)\s+= (-?\d+|\?)(?: .*)?)$/s;
const RESUMED = /^(\d+) +<\.\.\. (\w+) resumed>(.*)\)\s+= (-?\d+|\?)(?: .*)?$/s;

/** A call that has begun, with its arguments as text. */
interface Begun {
  readonly name: string;
  readonly text: string;
  readonly startedAt: number;
}

/** Reads the calls in the order in which they ended. */
export function readTrace(file: string): SystemCall[] {
  const calls: SystemCall[] = [];
  const begun = new Map<string, Begun>();
  const add = (call: Begun, result: string, endedAt: number) => {
    const { name, text, startedAt } = call;
    if (!result.startsWith("-"))
      calls.push({ name, args: argumentsIn(text), result: Number(result), startedAt, endedAt });
  };
  for (const [at, line] of readFileSync(file, "latin1").split("\n").entries()) {
    const [, process = "", resumed = "", end = "", ended = ""] = RESUMED.exec(line) ?? [];
    const id = `${process} ${resumed}`;
    const start = begun.get(id);
    if (start) {
      add({ ...start, text: start.text + end }, ended, at);
      begun.delete(id);
      continue;
    }
    const [, pid = "", name = "", args = "", result] = BEGUN.exec(line) ?? [];
    if (name === "") continue;
    const call = { name, text: args, startedAt: at };
    if (result !== undefined) add(call, result, at);
    // A descriptor is free as soon as its close begins; a process that ends does not return.
    else if (name === "close" || name === "exit_group") add(call, "0", at);
    else begun.set(`${pid} ${name}`, call);
  }
  return calls;
}
