import { nearest } from "../config/nearest.ts";
import { OPTIONS } from "../config/options.ts";
import { joined, quoted, UsageError } from "../config/usage-error.ts";
import { checkVariables } from "../config/variables.ts";
import { type Arguments, parseArguments } from "./arguments.ts";
import { audit } from "./audit.ts";
import { backup } from "./data/backup.ts";
import type { Command, Context, Outcome } from "./command.ts";
import { adminTokenRoll } from "./admin-token-roll.ts";
import { adminUrl } from "./admin-url.ts";
import { completion } from "./completion/completion.ts";
import { copy } from "./data/copy.ts";
import { demo } from "./demo.ts";
import { doctor } from "./doctor.ts";
import { health } from "./health.ts";
import { commandHelp, overview } from "./help.ts";
import { exportCommand } from "./data/export.ts";
import { importCommand } from "./data/import.ts";
import { keysCreate } from "./keys/keys-create.ts";
import { keysFind } from "./keys/keys-find.ts";
import { keysList } from "./keys/keys-list.ts";
import { keysRevoke } from "./keys/keys-revoke.ts";
import { keysRoll } from "./keys/keys-roll.ts";
import { keysSetPlan } from "./keys/keys-set-plan.ts";
import { keysShow } from "./keys/keys-show.ts";
import { keysUnban } from "./keys/keys-unban.ts";
import { keysUpdate } from "./keys/keys-update.ts";
import { man } from "./man.ts";
import { openapi } from "./openapi.ts";
import { ordersList } from "./pets-and-orders/orders-list.ts";
import { ordersShow } from "./pets-and-orders/orders-show.ts";
import { ordersUpdate } from "./pets-and-orders/orders-update.ts";
import { petsDelete } from "./pets-and-orders/pets-delete.ts";
import { petsList } from "./pets-and-orders/pets-list.ts";
import { petsShow } from "./pets-and-orders/pets-show.ts";
import { petsUpdate } from "./pets-and-orders/pets-update.ts";
import { restore } from "./data/restore.ts";
import { serve } from "./serve.ts";
import { usage } from "./usage.ts";
import { versionLine } from "./version.ts";

/** In the order of the overview. */
export const COMMANDS: readonly Command[] = [
  serve,
  health,
  demo,
  keysCreate,
  keysList,
  keysShow,
  keysFind,
  keysUpdate,
  keysSetPlan,
  keysRoll,
  keysRevoke,
  keysUnban,
  adminUrl,
  adminTokenRoll,
  petsList,
  petsShow,
  petsUpdate,
  petsDelete,
  ordersList,
  ordersShow,
  ordersUpdate,
  importCommand,
  exportCommand,
  audit,
  usage,
  backup,
  restore,
  copy,
  doctor,
  openapi,
  completion(() => COMMANDS),
  man(() => COMMANDS),
];

export async function runProgram(argv: readonly string[], context: Context): Promise<Outcome> {
  const parsed = parseArguments(argv, OPTIONS);
  const isHelpCommand = parsed.positionals[0] === "help";
  const positionals = isHelpCommand ? parsed.positionals.slice(1) : parsed.positionals;
  const command = COMMANDS.find(({ name }) => startsWith(positionals, name.split(" ")));

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
  return COMMANDS.flatMap(({ name }) => (name.startsWith(`${group} `) ? name.slice(`${group} `.length) : []));
}

function unknownCommand(positionals: readonly string[]): UsageError {
  const [first = ""] = positionals;
  const subcommands = subcommandsOf(positionals);
  if (positionals.length === 1 && subcommands.length > 0) {
    return new UsageError(`${first} needs a subcommand: ${joined(subcommands)}`);
  }
  const firstTwo = positionals.slice(0, 2).join(" ");
  const names = COMMANDS.map(({ name }) => name);
  const near = nearest(firstTwo, names) ?? nearest(first, names);
  const shown = near?.includes(" ") || subcommands.length > 0 ? firstTwo : first;
  return new UsageError(
    `unknown command ${quoted(shown)}; ${near ? `did you mean ${near}?` : "see petstore --help"}`,
  );
}
