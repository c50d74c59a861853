import { OPTIONS } from "../config.ts";
import { joined, Problem, quoted } from "../config/problem.ts";
import packageJson from "../../package.json" with { type: "json" };
import { type Arguments, parseArguments } from "./arguments.ts";
import type { Command, Context, Outcome } from "./command.ts";
import { COMMANDS } from "./commands.ts";
import { commandHelp, overview } from "./help.ts";
import { nearest } from "./nearest.ts";

/** From the words of a command line to what came of it. */
export async function runProgram(argv: readonly string[], context: Context): Promise<Outcome> {
  const parsed = parseArguments(argv, OPTIONS);
  const words = parsed.words[0] === "help" ? parsed.words.slice(1) : parsed.words;
  const asked = parsed.help || parsed.words[0] === "help";
  const command = COMMANDS.find(({ name }) => startsWith(words, name.split(" ")));

  if (asked) return showHelp(words, command, context);
  if (parsed.version) {
    await context.print(`petstore ${packageJson.version}\n`);
    return undefined;
  }
  if (command === undefined) return withoutCommand(argv, parsed, context);
  if (parsed.problem) return parsed.problem(command.options);
  return command.execute(words.slice(command.name.split(" ").length), parsed.given, context);
}

function startsWith(words: readonly string[], start: readonly string[]): boolean {
  return start.every((word, index) => words[index] === word);
}

async function showHelp(
  words: readonly string[],
  command: Command | undefined,
  context: Context,
): Promise<Outcome> {
  const group = words.length === 0 || (words.length === 1 && groupOf(words).length > 0);
  if (command === undefined && !group) return unknownCommand(words);
  await context.print(command ? commandHelp(command) : overview(COMMANDS));
  return undefined;
}

async function withoutCommand(
  argv: readonly string[],
  { words, problem }: Arguments,
  context: Context,
): Promise<Outcome> {
  if (problem && argv[0]?.startsWith("-")) return problem(OPTIONS);
  if (words.length > 0) return unknownCommand(words);
  if (argv.length > 0) return new Problem("no command is given; see petstore --help");
  await context.print(overview(COMMANDS));
  return undefined;
}

/** The second words of the commands that begin with this one: `keys` → create, list … */
function groupOf([first]: readonly string[]): string[] {
  return COMMANDS.flatMap(({ name }) => (name.startsWith(`${first} `) ? name.slice(`${first} `.length) : []));
}

function unknownCommand(words: readonly string[]): Problem {
  const group = groupOf(words);
  if (words.length === 1 && group.length > 0) return new Problem(`${words[0]} needs one of ${joined(group)}`);
  const typed = words.slice(0, 2).join(" ");
  const names = COMMANDS.map(({ name }) => name);
  const near = nearest(typed, names) ?? nearest(words[0] ?? "", names);
  const shown = near?.includes(" ") || group.length > 0 ? typed : (words[0] ?? "");
  return new Problem(
    `unknown command ${quoted(shown)}; ${near ? `did you mean ${near}?` : "see petstore --help"}`,
  );
}
