import packageJson from "../../package.json" with { type: "json" };
import { checkVariables, RENAMED_SETTINGS, renamedText } from "../config/options.ts";
import { joined, nearest, quoted, UsageError } from "../config/usage-error.ts";
import { EXECUTABLE } from "../executable.ts";
import { type Arguments, parseArguments } from "./arguments.ts";
import type { Command, Context, Outcome } from "./command.ts";
import { COMMANDS, OPTIONS } from "./commands.ts";
import { COMPLETE, complete } from "./completion.ts";
import { commandHelp, overview } from "./help.ts";

/** Earlier names of commands. They work until release 1.2. */
const RENAMED_COMMANDS = [
  ["keys", "roll", "rotate"],
  ["admin-token", "roll", "rotate"],
] as const;

/** The command line with the current names of commands and flags. */
function withCurrentNames(argv: readonly string[], warn: (line: string) => void): readonly string[] {
  return argv.map((word, i) => {
    const command = RENAMED_COMMANDS.find(([group, earlier]) => argv[i - 1] === group && word === earlier);
    if (command) {
      const [group, earlier, current] = command;
      warn(renamedText(`${group} ${earlier}`, `${group} ${current}`));
      return current;
    }
    const flag = Object.entries(RENAMED_SETTINGS).find(([earlier]) => word.split("=")[0] === `--${earlier}`);
    if (flag === undefined) return word;
    const [earlier, current] = flag;
    warn(renamedText(`--${earlier}`, `--${current}`));
    return word.replace(`--${earlier}`, `--${current}`);
  });
}

export async function runProgram(typed: readonly string[], context: Context): Promise<Outcome> {
  if (typed[0] === COMPLETE) {
    await context.print(complete(typed.slice(1), COMMANDS));
    return undefined;
  }
  const argv = withCurrentNames(typed, context.warn);
  const parsed = parseArguments(argv, OPTIONS);
  const isHelpCommand = parsed.positionals[0] === "help";
  const positionals = parsed.positionals.slice(isHelpCommand ? 1 : 0);
  const command = COMMANDS.find(({ name }) => name.split(" ").every((word, i) => positionals[i] === word));

  if (parsed.help || isHelpCommand) return showHelp(positionals, command, context);
  if (parsed.version) {
    await context.print(`${versionLine()}\n`);
    return undefined;
  }
  if (command === undefined) return withoutCommand(argv, parsed, context);
  if (parsed.error) return parsed.error(command.options);
  const checked = checkVariables(Object.keys(OPTIONS), parsed.flags, context.variables);
  if (checked instanceof UsageError) return checked;
  if ("port" in command.options) for (const warning of checked.warnings) context.warn(warning);
  const { variables, envFileVariables } = checked;
  const words = command.name.split(" ").length;
  return command.execute(positionals.slice(words), parsed.flags, { ...context, variables, envFileVariables });
}

const COMMAND_NAMES = COMMANDS.map(({ name }) => name);

async function showHelp(
  positionals: readonly string[],
  command: Command | undefined,
  context: Context,
): Promise<Outcome> {
  const isGroup = positionals.length === 1 && subcommandsOf(positionals).length > 0;
  if (command === undefined && positionals.length > 0 && !isGroup) return unknownCommand(positionals);
  await context.print(command ? commandHelp(command) : overview(COMMANDS));
  return undefined;
}

async function withoutCommand(
  argv: readonly string[],
  { positionals, error }: Arguments,
  context: Context,
): Promise<Outcome> {
  if (error && argv[0]?.startsWith("-")) return error(OPTIONS);
  if (positionals.length > 0) return unknownCommand(positionals);
  if (argv.length > 0) return new UsageError("no command given; see petstore --help");
  await context.print(overview(COMMANDS));
  return undefined;
}

/** `keys` → create, list … */
function subcommandsOf([group]: readonly string[]): string[] {
  return COMMAND_NAMES.flatMap((name) =>
    name.startsWith(`${group} `) ? name.slice(`${group} `.length) : [],
  );
}

function unknownCommand(positionals: readonly string[]): UsageError {
  const [first = ""] = positionals;
  const subcommands = subcommandsOf(positionals);
  if (positionals.length === 1 && subcommands.length > 0) {
    return new UsageError(`${first} needs a subcommand: ${joined(subcommands)}`);
  }
  const firstTwo = positionals.slice(0, 2).join(" ");
  const near = nearest(firstTwo, COMMAND_NAMES) ?? nearest(first, COMMAND_NAMES);
  const shown = near?.includes(" ") || subcommands.length > 0 ? firstTwo : first;
  return new UsageError(
    `unknown command ${quoted(shown)}; ${near ? `did you mean ${near}?` : "see petstore --help"}`,
  );
}
/** Such as `petstore 1.0.0 (commit 66cceed7213f, Bun 1.4.4)`. */
export function versionLine(contents = EXECUTABLE): string {
  const origin = contents === undefined ? "from source" : `commit ${contents.commit}`;
  return `petstore ${packageJson.version} (${origin}, Bun ${Bun.version})`;
}
