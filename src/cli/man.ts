import { SETTINGS } from "../config/options.ts";
import type { Option } from "../config/parse-options.ts";
import { type Command, defineCommand } from "./command.ts";
import { describeOption, NOTES, usageOf } from "./help.ts";

import packageJson from "../../package.json" with { type: "json" };

export const man = defineCommand({
  name: "man",
  summary: "Print the manual page",
  description:
    "Prints petstore(1), the manual page of all commands and options, in the format of man. Save it where man finds it.",
  options: {},
  examples: ["petstore man > /usr/local/share/man/man1/petstore.1"],
  run: async () => manualPage((await import("./commands.ts")).COMMANDS),
});

/** In mdoc(7), which groff and mandoc read. */
function manualPage(commands: readonly Command[]): string {
  return `.\\" Printed by petstore man.
.Dd ${releaseDate(packageJson.releaseDate)}
.Dt PETSTORE 1
.Os Petstore ${packageJson.version}
.Sh NAME
.Nm petstore
.Nd a pet store API over HTTP
.Sh SYNOPSIS
.Nm petstore
.Ar command
.Op Ar options
.Sh DESCRIPTION
Petstore serves a pet store API over HTTP to clients with API keys, with exact rate limits and exact 64-bit integers.
It stores its data in SQLite, or in PostgreSQL and Valkey if several servers share it.
.Pp
Start it with
.Dl petstore serve
.Sh COMMANDS
${commands.map(commandSection).join("")}.Sh SETTINGS
${optionList(Object.entries(SETTINGS))}.Sh ENVIRONMENT
${sentences(`${NOTES} Any other variable that begins with PETSTORE_ is an error.`)}.Sh FILES
.Bl -tag -width indent
.It Pa ~/.config/petstore/login.json
${sentences("The tokens of petstore login. The variable XDG_CONFIG_HOME replaces ~/.config.")}.El
.Sh EXIT STATUS
.Bl -tag -width 1n
.It 0
The command succeeded.
.It 1
The command failed.
.It 2
The command line or a variable is wrong.
.El
.Sh EXAMPLES
${commands.flatMap(({ examples }) => examples.map((example) => `.Dl ${escaped(example)}\n`)).join("")}`;
}

/** November 15, 2026, which is the form that the format has. */
function releaseDate(isoDate: string): string {
  return new Date(isoDate).toLocaleDateString("en-US", { dateStyle: "long", timeZone: "UTC" });
}

function commandSection(command: Command): string {
  const { summary, description, options } = command;
  const own = Object.entries(options).filter(([flag]) => !(flag in SETTINGS));
  const settings = Object.keys(options).filter((flag) => flag in SETTINGS);
  const named = settings.map((flag) => `\\-\\-${escaped(flag)}`).join(", ");
  return `.Ss ${escaped(`petstore ${usageOf(command)}`)}
${sentences(`${summary}. ${description}`)}${optionList(own)}${named && `.Pp\nSettings: ${named}.\n`}`;
}

function optionList(options: readonly (readonly [string, Option])[]): string {
  const items = options.map(([flag, option]) => {
    const { placeholder } = option.type;
    const argument = placeholder === undefined ? "" : ` Ar ${escaped(placeholder)}`;
    const text = describeOption(option);
    return `.It Fl Fl ${escaped(flag)}${argument}\n${sentences(`${text}.`)}`;
  });
  return items.length === 0 ? "" : `.Bl -tag -width indent\n${items.join("")}.El\n`;
}

/** One sentence on each line, as the format wants it. */
function sentences(text: string): string {
  return `${text
    .split(/(?<=[.;]) (?=[A-Z])/)
    .map(escaped)
    .join("\n")}\n`;
}

/** A line that begins with a dot or an apostrophe would be a request, and a plain - is a hyphen. */
function escaped(text: string): string {
  return text
    .replaceAll("\\", "\\e")
    .replaceAll("-", "\\-")
    .replace(/^(?=[.'])/, "\\&")
    .replace(/[^ -~]/gu, (character) => {
      const digits = character.codePointAt(0)?.toString(16).toUpperCase() ?? "";
      return `\\[u${digits.padStart(4, "0")}]`;
    });
}
