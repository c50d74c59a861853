import { describeDefault, flagUsage, type Option, variableOf } from "../config/parse-options.ts";
import { type Command, positionalUsage } from "./command.ts";
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

/** The command with its required arguments. */
function usageOf({ name, positionals, required, options }: Command): string {
  const flags = required.map((flag) => {
    const option = options[flag];
    return option ? flagUsage(flag, option) : `--${flag}`;
  });
  return [name, ...positionalUsage(positionals), ...flags].join(" ");
}

export function commandHelp(command: Command): string {
  const hasOptions = Object.keys(command.options).length > 0;
  return `${command.summary}.

Usage
  petstore ${usageOf(command)}${hasOptions ? " [options]" : ""}

${paragraph(command.description)}

${hasOptions ? optionSection(command) : ""}Examples
${command.examples.map((example) => `${INDENT}${example}\n`).join("")}`;
}

function optionSection(command: Command): string {
  return `Options
${optionLines(command)}
${paragraph(savedOptionsNote(command) + variableNote(command))}

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

function optionLines({ options, savedOptions, required }: Command): string {
  const rows = Object.entries(options)
    .filter(([flag]) => !(flag in savedOptions))
    .map(
      ([flag, option]) =>
        [INDENT + flagUsage(flag, option), describeOption(option, required.includes(flag))] as const,
    );
  const indent = Math.max(...rows.map(([usage]) => usage.length)) + INDENT.length;
  return rows
    .flatMap(([usage, text]) =>
      wrapped(text, WIDTH - indent).map(
        (line, index) => `${(index === 0 ? usage : "").padEnd(indent)}${line}\n`,
      ),
    )
    .join("");
}

/** The help text with bounds and default. */
export function describeOption(option: Option, isRequired: boolean): string {
  const value = describeDefault(option);
  const notes = [option.type.range, value && `default: ${value}`, isRequired && "required"].filter(Boolean);
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
