import { describeDefault, flagUsage, type Option, variableOf } from "../config/parse-options.ts";
import type { Command } from "./command.ts";
import { columns } from "./output.ts";

const WIDTH = 100;
const INDENT = "  ";

export function overview(commands: readonly Command[]): string {
  const rows = commands.map((command) => [INDENT + usageOf(command), command.summary]);
  return `Petstore: a pet store API over HTTP.

Usage
  petstore COMMAND [options]

Commands
${columns(rows)}
Every command has --help. Every option has an environment variable: --port is PETSTORE_PORT.
Flags override variables, variables override those in --env-file, and these override defaults.

Get started
  petstore serve

Exit status: 0 success, 1 failure, 2 wrong usage.
`;
}

/** The command with its required arguments. An optional positional is in brackets. */
export function usageOf({ name, positionals, options }: Command): string {
  const labels = Object.entries(positionals).map(([label, { optional }]) =>
    optional ? `[${label}]` : label,
  );
  const required = Object.entries(options).filter(([, { isRequired }]) => isRequired);
  return [name, ...labels, ...required.map(([flag, option]) => flagUsage(flag, option))].join(" ");
}

export function commandHelp(command: Command): string {
  const hasOptions = Object.keys(command.options).length > 0;
  return `${command.summary}.

Usage
  petstore ${usageOf(command)}${hasOptions ? " [options]" : ""}

${Bun.wrapAnsi(command.description, WIDTH)}

${hasOptions ? optionSection(command) : ""}Examples
${command.examples.map((example) => `${INDENT}${example}\n`).join("")}`;
}

function optionSection(command: Command): string {
  return `Options
${optionLines(command)}
${Bun.wrapAnsi(savedOptionsNote(command) + variableNote(command), WIDTH)}

`;
}

function variableNote({ options }: Command): string {
  const flag = Object.keys(options).find((flag) => flag.includes("-") && flag !== "env-file") ?? "env";
  return `Every option has an environment variable: --${flag} is ${variableOf(flag)}. A flag overrides its variable.`;
}

function savedOptionsNote({ savedOptions }: Command): string {
  const flags = Object.keys(savedOptions).map((flag) => `--${flag}`);
  if (flags.length === 0) return "";
  return `These are taken from the server that last started on this data, unless they are given here: ${flags.join(", ")}. `;
}

function optionLines({ options, savedOptions }: Command): string {
  const rows = Object.entries(options)
    .filter(([flag]) => !(flag in savedOptions))
    .map(([flag, option]) => ({
      usage: INDENT + flagUsage(flag, option),
      text: describeOption(option),
    }));
  const indent = Math.max(...rows.map(({ usage }) => usage.length)) + INDENT.length;
  const linesOf = (text: string) =>
    Bun.wrapAnsi(text, WIDTH - indent).replaceAll("\n", `\n${" ".repeat(indent)}`);
  return rows.map(({ usage, text }) => `${usage.padEnd(indent)}${linesOf(text)}\n`).join("");
}

/** The help text with bounds and default. */
export function describeOption(option: Option): string {
  const value = describeDefault(option);
  const notes = [option.type.range, value && `default: ${value}`, option.isRequired && "required"].filter(
    Boolean,
  );
  return notes.length === 0 ? option.help : `${option.help} (${notes.join("; ")})`;
}
