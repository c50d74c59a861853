import { type Candidates, type CompletedCommand, firstWords, groupsOf, VERSION } from "./candidates.ts";

export function fishCompletion(commands: readonly CompletedCommand[]): string {
  const first = firstWords(commands).map(({ word, summary }) =>
    line("__fish_use_subcommand", `-a ${word} -d ${quoted(summary)}`),
  );
  const version = line("__fish_use_subcommand", `-l ${VERSION.flag.slice(2)} -d ${quoted(VERSION.help)}`);
  return `# Completion of petstore for fish: petstore completion fish | source
complete -c petstore -f
${[...first, version, ...groupLines(commands), ...commands.flatMap(commandLines)].join("\n")}
`;
}

function groupLines(commands: readonly CompletedCommand[]): string[] {
  return [...groupsOf(commands)].flatMap(([group, words]) => {
    const names = words.map(({ word }) => word).join(" ");
    const condition = `__fish_seen_subcommand_from ${group}; and not __fish_seen_subcommand_from ${names}`;
    return words.map(({ word, summary }) => line(condition, `-a ${word} -d ${quoted(summary)}`));
  });
}

function commandLines({ name, positionals, flags }: CompletedCommand): string[] {
  const condition = name
    .split(" ")
    .map((word) => `__fish_seen_subcommand_from ${word}`)
    .join("; and ");
  const values = positionals.flatMap((value) => (value.kind === "text" ? [] : line(condition, offer(value))));
  const options = flags.map(({ flag, help, value }) => {
    const argument = value === undefined ? "" : ` ${required(value)}`;
    return line(condition, `-l ${flag.slice(2)}${argument} -d ${quoted(help)}`);
  });
  return [...values, ...options];
}

function line(condition: string, completion: string): string {
  return `complete -c petstore -n ${quoted(condition)} ${completion}`;
}

function offer(value: Candidates): string {
  switch (value.kind) {
    case "words":
      return `-a ${quoted(value.words.join(" "))}`;
    case "files":
      return "-F";
    case "directories":
      return "-a '(__fish_complete_directories)'";
    case "text":
      return "";
  }
}

/** A flag needs a value; `-x` offers nothing else, `-r` files too. */
function required(value: Candidates): string {
  return value.kind === "files" ? "-r -F" : `-x ${offer(value)}`.trimEnd();
}

function quoted(text: string): string {
  return `'${text.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`;
}
