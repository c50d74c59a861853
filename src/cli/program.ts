import packageJson from "../../package.json" with { type: "json" };
import { alternatives, printable, printableLines } from "../text/formatting.ts";
import type { Flags } from "../config/parse-options.ts";
import { REMOVED_COMMANDS } from "../config/removed-settings.ts";
import { checkVariables } from "../config/variables.ts";
import { UsageError } from "../config/usage-error.ts";
import { didYouMean, nearest } from "../text/nearest.ts";
import { quoted } from "../config/quoted.ts";
import { EXECUTABLE } from "../executable.ts";
import { type Arguments, parseArguments } from "./arguments.ts";
import { errorMessage } from "./error-message.ts";
import { type Command, Failure, type FinalText, type ProcessContext } from "./command.ts";
import type * as AllCommands from "./command-table.ts";
import { COMPLETE, complete } from "./completion.ts";
import { commandHelp, groupHelp, overview } from "./help.ts";
import { withLogin } from "./login-file.ts";
import { Screen } from "./output.ts";
import { withServiceFile } from "./service-file.ts";
import { serve } from "./commands/serve.ts";

type CommandTable = Pick<typeof AllCommands, "COMMANDS" | "COMMAND_GROUPS" | "OPTIONS">;

/** Throws UsageError, Failure, or the error of a fault. */
export async function runProgram(argv: readonly string[], context: ProcessContext): Promise<void> {
  const text = await finalTextOf(argv, context);
  if (text !== undefined) await context.print(text);
}

/** Returns the text for standard error and the exit status. */
export function describeFailure(error: unknown): { readonly err: string; readonly code: number } {
  const isText = error instanceof UsageError || error instanceof Failure;
  const err = isText ? printableLines(error.message) : errorMessage(error);
  const status = error instanceof Failure ? error.exitStatus : 1;
  return { err, code: error instanceof UsageError ? 2 : status };
}

async function finalTextOf(argv: readonly string[], given: ProcessContext): Promise<FinalText> {
  if (argv[0] === COMPLETE) return complete(argv.slice(1), (await import("./command-table.ts")).COMMANDS);
  const find = async (table: CommandTable) => commandOf(argv, table, given);
  const serving = argv[0] === serve.name ? await find(SERVE_ALONE).catch(() => undefined) : undefined;
  const chosen = typeof serving === "function" ? serving : await find(await import("./command-table.ts"));
  return typeof chosen === "function" ? chosen() : chosen;
}

/** Loading the other commands takes a quarter of the start time of a server. Only help and errors need them. */
const SERVE_ALONE: CommandTable = {
  COMMANDS: [serve],
  COMMAND_GROUPS: { Server: [serve] },
  OPTIONS: serve.options,
};

/** Runs the command; a text if there is nothing to run. */
function commandOf(
  argv: readonly string[],
  table: CommandTable,
  given: ProcessContext,
): (() => Promise<FinalText>) | string {
  const { COMMANDS, COMMAND_GROUPS, OPTIONS } = table;
  const parsed = parseArguments(argv, OPTIONS);
  const screen = screenOf(parsed.color, given);
  const isHelpCommand = parsed.positionals[0] === "help";
  const positionals = parsed.positionals.slice(isHelpCommand ? 1 : 0);
  const command = COMMANDS.find(({ name }) => name.split(" ").every((word, i) => positionals[i] === word));

  if (parsed.help || isHelpCommand) return helpOn(positionals, command, screen, table);
  if (parsed.version || positionals.join(" ") === "version") return `${versionLine()}\n`;
  if (command === undefined) {
    if (parsed.error && argv[0]?.startsWith("-")) throw parsed.error(OPTIONS);
    if (positionals.length > 0) throw unknownCommand(positionals, COMMANDS);
    if (argv.length > 0) throw new UsageError("no command given; see petstore --help");
    return overview(COMMAND_GROUPS, screen);
  }
  if (parsed.error) throw parsed.error(command.options);
  const known = Object.keys(OPTIONS);
  const locate = (flags: Flags) => {
    const { variables, ...checked } = checkVariables(known, flags, given.variables);
    const location = "server" in command.options ? withLogin(flags, variables) : { variables };
    return { ...checked, location };
  };
  const { location: located } = locate(parsed.flags);
  const flags = withServiceFile(given.serviceFile, command, { flags: parsed.flags, ...located });
  const { envFileVariables, warnings, location } = locate(flags);
  return async () => {
    if (flags !== parsed.flags) given.warn(`the settings are those of ${given.serviceFile}`);
    if ("port" in command.options) for (const warning of warnings) given.warn(warning);
    const words = command.name.split(" ").length;
    const context = { ...withPrintableOutput(given, screen), ...location, screen, envFileVariables };
    const text = await command.execute(positionals.slice(words), flags, context);
    return text === undefined ? undefined : screen.output(text);
  };
}

/** Servers, files and other users wrote a part of what commands print, warn of and ask. */
function withPrintableOutput(given: ProcessContext, screen: Screen): ProcessContext {
  return {
    ...given,
    print: (text) => given.print(typeof text === "string" ? screen.output(text) : text),
    warn: (line) => given.warn(printableLines(line)),
    confirm: (question) => given.confirm(printable(question)),
  };
}

/** https://no-color.org: any value that is not empty means no color. */
function screenOf(color: Arguments["color"], { variables, clock, ...context }: ProcessContext): Screen {
  const columns = context.columns();
  const isPlain = Boolean(variables["NO_COLOR"]) || variables["TERM"] === "dumb";
  return new Screen({
    columns,
    hasColor: color === "always" || (color === "auto" && columns !== undefined && !isPlain),
    now: () => clock.now(),
  });
}

function helpOn(
  [group = "", ...others]: readonly string[],
  command: Command | undefined,
  screen: Screen,
  { COMMANDS, COMMAND_GROUPS }: CommandTable,
): string {
  const ofGroup = COMMANDS.filter(({ name }) => name.startsWith(`${group} `));
  if (command) return commandHelp(command, screen);
  if (group === "") return overview(COMMAND_GROUPS, screen);
  if (others.length === 0 && ofGroup.length > 0) return groupHelp(group, ofGroup, screen);
  throw unknownCommand([group, ...others], COMMANDS);
}

/** A suggestion has the first word that was typed, or the nearest one. */
function unknownCommand([first = "", second]: readonly string[], commands: readonly Command[]): UsageError {
  const removed = REMOVED_COMMANDS.get(first);
  if (removed !== undefined) return new UsageError(`${first} ${removed}`);
  const words = commands.map(({ name }) => name.split(" "));
  const byFirst = Map.groupBy(words, ([word = ""]) => word);
  const group = nearest(first, [...byFirst.keys()]);
  const subcommands = (byFirst.get(group ?? "") ?? []).flatMap(([, word]) => word ?? []);
  if (group === first && second === undefined)
    return new UsageError(`${first} needs a subcommand: ${alternatives(subcommands)}`);
  const near = second === undefined ? undefined : nearest(second, subcommands);
  const typed = subcommands.length > 0 && second !== undefined ? `${first} ${second}` : first;
  const suggestion =
    group === undefined
      ? "see petstore --help"
      : group === first && near === undefined
        ? `${group} has ${alternatives(subcommands).replace(/ or (?=\S+$)/, " and ")}`
        : didYouMean(near === undefined ? group : `${group} ${near}`);
  return new UsageError(`unknown command ${quoted(typed)}; ${suggestion}`);
}

/** Returns a line such as `petstore 1.3.0 (commit 66cceed7213f, Bun 1.4.4)`. */
function versionLine(contents = EXECUTABLE): string {
  const origin = contents === undefined ? "from source" : `commit ${contents.commit}`;
  return `petstore ${packageJson.version} (${origin}, Bun ${Bun.version})`;
}
