import { defaultOf, type Option, variableOf } from "../config/option.ts";
import { joined } from "../config/problem.ts";
import type { Command } from "./command.ts";
import { columns } from "./table.ts";

const WIDTH = 100;
const INDENT = "  ";

export function overview(commands: readonly Command[]): string {
  const rows = commands.map((command) => [INDENT + usageOf(command), command.summary]);
  return `Petstore: a pet store over HTTP.

Usage
  petstore COMMAND [options]

Commands
${columns(rows)}
Every command takes --help. Every option has a variable of its own: --port is PETSTORE_PORT.
Flags win over variables, variables over defaults.

Start here
  petstore serve

Exit status: 0 done, 1 could not be done, 2 wrongly asked for.
`;
}

/** The words that cannot be left out. */
function usageOf({ name, positionals, required, options }: Command): string {
  const flags = required.map((flag) => flagUsage(flag, options[flag]));
  return [name, ...Object.keys(positionals), ...flags].join(" ");
}

export function commandHelp(command: Command): string {
  return `${command.summary}.

Usage
  petstore ${usageOf(command)} [options]

${paragraph(command.description)}

Options
${optionLines(command)}
${paragraph(asServedNote(command) + variableNote(command))}

Examples
${command.examples.map((example) => `${INDENT}${example}\n`).join("")}`;
}

function variableNote({ options }: Command): string {
  const flag = Object.keys(options).find((flag) => flag.includes("-")) ?? "env";
  return `Every option has a variable, which a flag overrides: --${flag} is ${variableOf(flag)}, and so on.`;
}

function asServedNote({ asServed }: Command): string {
  const flags = Object.keys(asServed).map((flag) => `--${flag}`);
  if (flags.length === 0) return "";
  return `If the server was started with ${joined(flags)}, give them here as well: what is shown follows them. `;
}

function optionLines({ options, asServed, required }: Command): string {
  const rows = Object.entries(options)
    .filter(([flag]) => !(flag in asServed))
    .map(
      ([flag, option]) =>
        [INDENT + flagUsage(flag, option), meaning(option, required.includes(flag))] as const,
    );
  const gap = Math.max(...rows.map(([usage]) => usage.length)) + INDENT.length;
  return rows
    .flatMap(([usage, text]) =>
      wrapped(text, WIDTH - gap).map((line, index) => `${(index === 0 ? usage : "").padEnd(gap)}${line}\n`),
    )
    .join("");
}

function flagUsage(flag: string, option: Option | undefined): string {
  return option?.kind.placeholder === undefined ? `--${flag}` : `--${flag} ${option.kind.placeholder}`;
}

/** The help line with its bounds and its default. */
function meaning(option: Option, required: boolean): string {
  const value = defaultOf(option);
  const notes = [option.kind.range, value && `default ${value}`, required && "required"].filter(Boolean);
  return notes.length === 0 ? option.help : `${option.help} (${notes.join("; ")})`;
}

function paragraph(text: string): string {
  return wrapped(text, WIDTH).join("\n");
}

function wrapped(text: string, width: number): string[] {
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(" ")) {
    if (line !== "" && line.length + 1 + word.length > width) {
      lines.push(line);
      line = word;
    } else line = line === "" ? word : `${line} ${word}`;
  }
  return [...lines, line];
}
