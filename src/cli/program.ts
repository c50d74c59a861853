import { nearest } from "../config/nearest.ts";
import { OPTIONS } from "../config/options.ts";
import { joined, quoted, UsageError } from "../config/usage-error.ts";
import { checkVariables } from "../config/variables.ts";
import { type Arguments, parseArguments } from "./arguments.ts";
import type { Command, Context, Outcome } from "./command.ts";
import { COMMAND_NAMES, loadCommand, loadCommands } from "./commands.ts";
import { commandHelp, overview } from "./help.ts";
import { versionLine } from "./version.ts";

export async function runProgram(argv: readonly string[], context: Context): Promise<Outcome> {
  const parsed = parseArguments(argv, OPTIONS);
  const isHelpCommand = parsed.positionals[0] === "help";
  const positionals = isHelpCommand ? parsed.positionals.slice(1) : parsed.positionals;
  const name = COMMAND_NAMES.find((words) => startsWith(positionals, words.split(" ")));
  const command = name && (await loadCommand(name));

  if (parsed.help || isHelpCommand) return showHelp(positionals, command, context);
  if (parsed.version) {
    await context.print(`${versionLine()}\n`);
    return undefined;
  }
  if (command === undefined) return withoutCommand(argv, parsed, context);
  if (parsed.error) return parsed.error(command.options);
  const checked = checkVariables(parsed.flags, context.variables);
  if (checked instanceof UsageError) return checked;
  if ("port" in command.options) for (const warning of checked.warnings) context.warn(warning);
  const { variables, envFileVariables } = checked;
  const words = command.name.split(" ").length;
  return command.execute(positionals.slice(words), parsed.flags, { ...context, variables, envFileVariables });
}

function startsWith(texts: readonly string[], start: readonly string[]): boolean {
  return start.every((text, index) => texts[index] === text);
}

async function showHelp(
  positionals: readonly string[],
  command: Command | undefined,
  context: Context,
): Promise<Outcome> {
  const isGroup = positionals.length === 1 && subcommandsOf(positionals).length > 0;
  if (command === undefined && positionals.length > 0 && !isGroup) return unknownCommand(positionals);
  await context.print(command ? commandHelp(command) : overview(await loadCommands()));
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
  await context.print(overview(await loadCommands()));
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
