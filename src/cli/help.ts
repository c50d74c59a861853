import { ADDRESS_OPTIONS, SETTING_GROUPS, SETTINGS } from "../config/options.ts";
import {
  describeDefault,
  helpOf,
  flagText,
  type Option,
  type Options,
  variableOf,
} from "../config/parse-options.ts";
import type { Command } from "./command.ts";
import { definitions, type Screen } from "./output.ts";

/** The width of help texts. Longer lines are hard to read. */
const MAX_WIDTH = 100;
const INDENT = "  ";

const widthOf = ({ columns = MAX_WIDTH }: Screen) => Math.min(MAX_WIDTH, columns);

export function overview(groups: Readonly<Record<string, readonly Command[]>>, screen: Screen): string {
  const sections = Object.entries(groups).map(([title, commands]) => commandSection(title, commands, screen));
  return `Petstore: a pet store API over HTTP.

${screen.paint("bold", "Usage")}
  petstore COMMAND [options]

${sections.join("\n")}
${Bun.wrapAnsi(`petstore COMMAND --help shows the options of a command. ${NOTES}`, widthOf(screen))}

${screen.paint("bold", "Get started")}
  petstore serve

Exit status: 0 success, 1 failure, 2 wrong usage.
`;
}

/** The help of commands with a first word in common, such as `keys`. What all of them take is shown once. */
export function groupHelp(name: string, commands: readonly Command[], screen: Screen): string {
  const [first, ...others] = commands;
  const shared = Object.entries(first?.options ?? {}).filter(
    ([flag]) => first && !isSaved(flag, first) && others.every(({ options }) => flag in options),
  );
  return `${screen.paint("bold", "Usage")}
  petstore ${name} COMMAND [options]

${commandSection("Commands", commands, screen)}
${optionSections(Object.fromEntries(shared), "Options of all of them", screen)}
${Bun.wrapAnsi(`petstore ${name} COMMAND --help shows the other options of a command. ${NOTES}`, widthOf(screen))}
`;
}

function commandSection(title: string, commands: readonly Command[], screen: Screen): string {
  const rows = commands.map((command) => [INDENT + commandText(command), command.summary] as const);
  return `${screen.paint("bold", title)}\n${definitions(rows, widthOf(screen))}`;
}

/** The notes that apply to all commands. */
const NOTES =
  "The settings of petstore serve have environment variables: --port is PETSTORE_PORT. PETSTORE_SERVER and PETSTORE_TOKEN are those of scripts that work on a remote server, in place of petstore login. Flags override variables, variables override those in --env-file, and these override defaults. --color always or never turns colors on or off, and the variable NO_COLOR turns them off.";

/** The command with its required arguments. An optional positional is in brackets. */
function commandText({ name, positionals, options }: Command): string {
  const labels = Object.entries(positionals).map(([label, { optional }]) =>
    optional ? `[${label}]` : label,
  );
  const required = Object.entries(options).filter(([, { isRequired }]) => isRequired);
  return [name, ...labels, ...required.map(([flag, option]) => flagText(flag, option))].join(" ");
}

export function commandHelp(command: Command, screen: Screen): string {
  const { summary, description, options, examples } = command;
  const shown = Object.fromEntries(Object.entries(options).filter(([flag]) => !isSaved(flag, command)));
  const hasOptions = Object.keys(options).length > 0;
  const notes = Bun.wrapAnsi(savedOptionsNote(command) + variableNote(command), widthOf(screen));
  const sections = hasOptions
    ? `${optionSections(shown, "Options", screen)}\n${notes && `${notes}\n\n`}`
    : "";
  return `${summary}.

${screen.paint("bold", "Usage")}
  petstore ${commandText(command)}${hasOptions ? " [options]" : ""}

${Bun.wrapAnsi(description, widthOf(screen))}

${sections}${screen.paint("bold", "Examples")}
${examples.map((example) => `${INDENT}${example}\n`).join("")}`;
}

function variableNote({ options }: Command): string {
  const flags = Object.keys(options).filter((flag) => flag in SETTINGS);
  const flag = flags.find((each) => each.includes("-") && each !== "env-file") ?? flags[0];
  if (flag === undefined) return "";
  const which = flags.length === Object.keys(options).length ? "Every option" : "Every setting of the server";
  return `${which} has an environment variable: --${flag} is ${variableOf(flag)}. A flag overrides its variable.`;
}

/** Whether the server saves the option with its data, for the commands that work on a server. */
function isSaved(flag: string, { options }: Command): boolean {
  return "server" in options && flag in ADDRESS_OPTIONS;
}

function savedOptionsNote(command: Command): string {
  const flags = Object.keys(command.options).flatMap((flag) => (isSaved(flag, command) ? `--${flag}` : []));
  if (flags.length === 0) return "";
  return `These are taken from the server that last started on this data, unless they are given here: ${flags.join(", ")}. `;
}

/** The options of a command come first, and the settings of servers follow in their groups. */
function optionSections(options: Options, title: string, screen: Screen): string {
  const groupOf = ([flag]: [string, Option]) =>
    Object.keys(SETTING_GROUPS).find((group) => flag in (SETTING_GROUPS[group] ?? {})) ??
    (flag in SETTINGS ? "Server" : title);
  const groups = Map.groupBy(Object.entries(options), groupOf);
  const order = [title, ...Object.keys(SETTING_GROUPS), "Server"];
  return order
    .flatMap((group) => {
      const rows = groups
        .get(group)
        ?.map(([flag, option]) => [INDENT + flagText(flag, option), describeOption(option)] as const);
      return rows ? `${screen.paint("bold", group)}\n${definitions(rows, widthOf(screen))}` : [];
    })
    .join("\n");
}

/** The help text with bounds and default. */
function describeOption(option: Option): string {
  const value = describeDefault(option);
  const notes = [option.type.range, value && `default: ${value}`, option.isRequired && "required"].filter(
    Boolean,
  );
  return notes.length === 0 ? helpOf(option) : `${helpOf(option)} (${notes.join("; ")})`;
}
