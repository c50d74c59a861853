import type { Options } from "../config/parse-options.ts";
import { choice, type ValueType } from "../config/value-types.ts";
import { parseArguments } from "./arguments.ts";
import { type Command, defineCommand } from "./command.ts";

/**
 * The first argument with which the scripts ask this program what fits the last of the words that follow. Each line of
 * the answer is a word, a tab and its description, or the only line is `:files` or `:directories`.
 */
export const COMPLETE = "__complete";

const BASH = `# Completion of petstore for bash: eval "$(petstore completion bash)"

_petstore() {
  local IFS=$'\\n' word=\${COMP_WORDS[COMP_CWORD]}
  local lines=$("\${COMP_WORDS[0]}" ${COMPLETE} "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
  case $lines in
    :files) COMPREPLY=($(compgen -f -- "$word")); compopt -o filenames 2>/dev/null ;;
    :directories) COMPREPLY=($(compgen -d -- "$word")); compopt -o filenames 2>/dev/null ;;
    *) COMPREPLY=($(printf '%s\\n' "$lines" | cut -f 1)) ;;
  esac
}

complete -F _petstore petstore
`;

const ZSH = `#compdef petstore
# Completion of petstore for zsh: eval "$(petstore completion zsh)", after compinit,
# or a file _petstore in a directory of $fpath.

_petstore() {
  local -a lines candidates
  lines=("\${(@f)$("$words[1]" ${COMPLETE} "\${(@)words[2,CURRENT]}" 2>/dev/null)}")
  case $lines[1] in
    (:files) _files ;;
    (:directories) _files -/ ;;
    (?*)
      candidates=("\${(@)lines//:/\\\\:}")
      candidates=("\${(@)candidates/$'\\t'/:}")
      _describe petstore candidates ;;
  esac
}

if [[ \${funcstack[1]-} == _petstore ]]; then
  _petstore "$@"
else
  compdef _petstore petstore
fi
`;

const FISH = `# Completion of petstore for fish: petstore completion fish | source

function __petstore_complete
  set -l words (commandline -opc)
  set -l word (commandline -ct)
  set -l lines ($words[1] ${COMPLETE} $words[2..] "$word" 2>/dev/null)
  switch "$lines[1]"
    case :files
      __fish_complete_path "$word"
    case :directories
      __fish_complete_directories "$word"
    case '*'
      printf '%s\\n' $lines
  end
end

complete -c petstore -f -a '(__petstore_complete)'
`;

const SCRIPTS = { bash: BASH, zsh: ZSH, fish: FISH } as const;

export const completion = defineCommand({
  name: "completion",
  summary: "Print a script that completes commands and options in a shell",
  description:
    "Prints a completion script for bash, zsh or fish. Commands, options, their choices, files and directories are completed. Load the script when the shell starts. It asks this program what fits, so it stays the same after an upgrade.",
  data: "nothing",
  positionals: { SHELL: choice("SHELL", ["bash", "zsh", "fish"]) },
  options: {},
  examples: [
    "petstore completion bash > /etc/bash_completion.d/petstore",
    "petstore completion zsh > /usr/local/share/zsh/site-functions/_petstore",
    "petstore completion fish > /etc/fish/completions/petstore.fish",
  ],
  run: async ({ positionals: { SHELL: shell } }) => SCRIPTS[shell],
});

/** A word and its description. */
type Candidate = readonly [word: string, description?: string];

const VERSION: Candidate = ["--version", "Show the version"];
const HELP: Candidate = ["--help", "Show how to use the command"];

/** The answer to a script: `words` are those after the name of the program, and the last one is completed. */
export function complete(words: readonly string[], commands: readonly Command[]): string {
  const last = words.at(-1) ?? "";
  const found = candidatesFor(words.slice(0, -1), last, commands);
  if (typeof found === "string") return `${found}\n`;
  const fitting = found.filter(([word]) => word.startsWith(last));
  return fitting.map((candidate) => `${candidate.join("\t")}\n`).join("");
}

function candidatesFor(
  before: readonly string[],
  last: string,
  commands: readonly Command[],
): readonly Candidate[] | ":files" | ":directories" {
  const options: Options = Object.assign({}, ...commands.map((command) => command.options));
  const parsed = parseArguments(before, options).positionals;
  const positionals = parsed[0] === "help" ? parsed.slice(1) : parsed;
  const command = commands.find(({ name }) => `${positionals.join(" ")} `.startsWith(`${name} `));
  const [, flag = ""] = /^--(.*)/.exec(before.at(-1) ?? "") ?? [];
  if (Object.hasOwn(options, flag) && options[flag]?.type.placeholder !== undefined)
    return valuesOf(command?.options[flag]?.type);
  if (command === undefined) return nextWords(positionals, commands);
  if (last.startsWith("-")) {
    const flags = Object.entries(command.options).filter(([, { isVariableOnly }]) => !isVariableOnly);
    return [...flags.map(([name, { help }]) => [`--${name}`, help] as const), HELP];
  }
  const index = positionals.length - command.name.split(" ").length;
  return valuesOf(Object.values(command.positionals)[index]);
}

function valuesOf(type: ValueType<unknown> | undefined): readonly Candidate[] | ":files" | ":directories" {
  if (type?.choices) return type.choices.map((word) => [word]);
  if (type?.placeholder?.startsWith("FILE")) return ":files";
  return type?.placeholder?.startsWith("DIR") ? ":directories" : [];
}

/** The commands and groups that a command line can begin with, or the commands of a group. */
function nextWords(positionals: readonly string[], commands: readonly Command[]): readonly Candidate[] {
  const start = positionals.map((word) => `${word} `).join("");
  const words = new Map<string, string>();
  for (const { name, summary } of commands) {
    if (!name.startsWith(start)) continue;
    const [word = "", ...rest] = name.slice(start.length).split(" ");
    words.set(word, rest.length === 0 ? summary : `Commands on ${word.replaceAll("-", " ")}`);
  }
  return start === "" ? [...words, ["help", "Show how to use a command"], VERSION] : [...words];
}
