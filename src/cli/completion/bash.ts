import {
  type Candidates,
  type CompletedCommand,
  firstWords,
  flagsByCandidates,
  groupsOf,
  switchesOf,
  VERSION,
} from "./candidates.ts";

/** Bash 3.2 or later; it needs no other package. */
export function bashCompletion(commands: readonly CompletedCommand[]): string {
  return `# Completion of petstore for bash: eval "$(petstore completion bash)"

_petstore_words() {
  COMPREPLY=($(compgen -W "$1" -- "$word"))
}

_petstore_paths() {
  local IFS=$'\\n'
  COMPREPLY=($(compgen "$1" -- "$word"))
  compopt -o filenames 2>/dev/null
}

_petstore() {
  local word=\${COMP_WORDS[COMP_CWORD]} previous=\${COMP_WORDS[COMP_CWORD - 1]} command= i
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; i++)); do
    case \${COMP_WORDS[i]} in
      ${switchesOf(commands).join("|")}) ;;
      -*) ((i++)) ;;
      *) command+="\${command:+ }\${COMP_WORDS[i]}" ;;
    esac
  done
  case \${command#help } in
${commands.map(commandCase).join("")}${groupCases(commands)}    ''|help) _petstore_words '${[...firstWords(commands).map(({ word }) => word), VERSION.flag].join(" ")}' ;;
  esac
}

complete -F _petstore petstore
`;
}

function commandCase({ name, positionals, flags }: CompletedCommand): string {
  const values = flagsByCandidates(flags).map(
    ({ flags, value }) => `        ${flags.join("|")}) ${completion(value)}return ;;\n`,
  );
  const words = `_petstore_words '${flags.map(({ flag }) => flag).join(" ")}'`;
  return `    '${name}'|'${name} '*)
      case $previous in
${values.join("")}      esac
      case $word in
        -*) ${words}; return ;;
      esac
      case $command in
${positionalCases(name, positionals)}      esac ;;
`;
}

/** Those with more words come first, because a pattern also matches what follows. */
function positionalCases(name: string, positionals: readonly Candidates[]): string {
  const pattern = (index: number) => (index === 0 ? `'${name}'` : `'${name} '?*${"' '?*".repeat(index - 1)}`);
  return positionals
    .map((value, index) => `        ${pattern(index)}) ${completion(value)};;\n`)
    .toReversed()
    .join("");
}

function groupCases(commands: readonly CompletedCommand[]): string {
  return [...groupsOf(commands)]
    .map(
      ([group, words]) => `    ${group}) _petstore_words '${words.map(({ word }) => word).join(" ")}' ;;\n`,
    )
    .join("");
}

function completion(value: Candidates): string {
  switch (value.kind) {
    case "words":
      return `_petstore_words '${value.words.join(" ")}'; `;
    case "files":
      return "_petstore_paths -f; ";
    case "directories":
      return "_petstore_paths -d; ";
    case "text":
      return "";
  }
}
