import {
  type Candidates,
  type CompletedCommand,
  firstWords,
  flagsByCandidates,
  groupsOf,
  type NextWord,
  switchesOf,
  VERSION,
} from "./candidates.ts";

export function zshCompletion(commands: readonly CompletedCommand[]): string {
  const first = [...firstWords(commands), { word: VERSION.flag, summary: VERSION.help }];
  return `#compdef petstore
# Completion of petstore for zsh: eval "$(petstore completion zsh)", after compinit,
# or a file _petstore in a folder of $fpath.

_petstore() {
  local command= i
  local -a candidates
  for ((i = 2; i < CURRENT; i++)); do
    case $words[i] in
      (${switchesOf(commands).join("|")}) ;;
      (-*) ((i++)) ;;
      (*) command+="\${command:+ }$words[i]" ;;
    esac
  done
  case \${command#help } in
${commands.map(commandCase).join("")}${groupCases(commands)}    (''|help) ${described("command", first)} ;;
  esac
}

if [[ \${funcstack[1]-} == _petstore ]]; then
  _petstore "$@"
else
  compdef _petstore petstore
fi
`;
}

function commandCase({ name, positionals, flags }: CompletedCommand): string {
  const values = flagsByCandidates(flags).map(
    ({ flags, value }) => `        (${flags.join("|")}) ${completion(value)}; return ;;\n`,
  );
  const options = flags.map(({ flag, help }) => ({ word: flag, summary: help }));
  return `    ('${name}'|'${name} '*)
      case $words[CURRENT-1] in
${values.join("")}      esac
      if [[ $words[CURRENT] == -* ]]; then
        ${described("option", options)}
        return
      fi
      case $command in
${positionalCases(name, positionals)}      esac ;;
`;
}

/** Those with more words come first, because a pattern also matches what follows. */
function positionalCases(name: string, positionals: readonly Candidates[]): string {
  const pattern = (index: number) => (index === 0 ? `'${name}'` : `'${name} '?*${"' '?*".repeat(index - 1)}`);
  return positionals
    .map((value, index) => `        (${pattern(index)}) ${completion(value)} ;;\n`)
    .toReversed()
    .join("");
}

function groupCases(commands: readonly CompletedCommand[]): string {
  return [...groupsOf(commands)]
    .map(([group, words]) => `    (${group}) ${described("command", words)} ;;\n`)
    .join("");
}

function described(title: string, words: readonly NextWord[]): string {
  const candidates = words.map(({ word, summary }) => quoted(`${word}:${summary.replaceAll(":", "\\:")}`));
  return `candidates=(${candidates.join(" ")}); _describe ${title} candidates`;
}

function completion(value: Candidates): string {
  switch (value.kind) {
    case "words":
      return `compadd -- ${value.words.join(" ")}`;
    case "files":
      return "_files";
    case "directories":
      return "_files -/";
    case "text":
      return `_message ${quoted(value.placeholder)}`;
  }
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
