/* What can be changed in a line of code, so that a test should fail. */

import type { Random } from "../harness/random.ts";

/** A change of one line. */
export interface Mutation {
  /** The number of the line, from 0. */
  readonly line: number;
  readonly before: string;
  readonly after: string;
}

type Change = string | ((found: RegExpExecArray) => string);

/** Operators have spaces around them, and so generics and the arrows of functions are none. */
const SWAPS: readonly (readonly [pattern: RegExp, change: Change])[] = [
  ...Object.entries({
    "===": "!==",
    "!==": "===",
    "<": "<=",
    "<=": "<",
    ">": ">=",
    ">=": ">",
    "+": "-",
    "-": "+",
    "*": "/",
    "/": "*",
    "%": "*",
    "&&": "||",
    "||": "&&",
    "??": "&&",
    "+=": "-=",
    "-=": "+=",
    ">>>": "<<",
    "<<": ">>>",
  }).map(([from, to]) => [new RegExp(`(?<= )${RegExp.escape(from)}(?= )`, "g"), to] as const),
  [/\+\+/g, "--"],
  [/--/g, "++"],
  [/\btrue\b/g, "false"],
  [/\bfalse\b/g, "true"],
  [/\bMath\.min\b/g, "Math.max"],
  [/\bMath\.max\b/g, "Math.min"],
  [/\.some\(/g, ".every("],
  [/\.every\(/g, ".some("],
  [/(?<=\bif \()(?=.*\) )/g, "false && "],
  [/(?<=\b(?:if|while) \()(?!.*\) )/g, "!"],
  [/!(?=[\w(])/g, ""],
  [/(?<![-\w.#$])\d[\d_]*n?(?![\w.])/g, ([digits]) => changedNumber(digits)],
];

/** A long time or a large bound gets ten times as long; a small number is another one. */
function changedNumber(digits: string): string {
  const suffix = digits.endsWith("n") ? "n" : "";
  const value = Number(digits.replaceAll(/[_n]/g, ""));
  return `${value >= 10 ? value * 10 : value + 1}${suffix}`;
}

/** A call or an assignment that is a whole line. */
const STATEMENT =
  /^\s+(?:(?:await |void )?[\w.#?!]+\(.*\)|[\w.#[\]]+ (?:[-+|&?]{0,2}=) .+|return|continue|break);$/;
const ENDS_BEFORE = /(?:[;{}]|^)$/;
/** Lines that have only types, or text. */
const NO_CODE =
  /^\s*(?:import|export type|type|(?:export )?interface|declare)\b|^\s*readonly [\w"-]+\??: [^=]*;$/;
const HAS_CODE = /[;(){}=:?[\]&|,]/;

/** The mutations of a file, by chance one of each line that has any. */
export function mutationsOf(text: string, random: Random): readonly Mutation[] {
  const lines = text.split("\n");
  const bare = withoutTexts(text).split("\n");
  return bare.flatMap((code, line) => {
    const before = lines[line] ?? "";
    if (NO_CODE.test(code) || !HAS_CODE.test(code)) return [];
    const changes = [...changesOf(code, before)];
    const previous = bare.slice(0, line).findLast((each) => each.trim() !== "") ?? "";
    if (STATEMENT.test(code) && ENDS_BEFORE.test(previous.trimEnd())) changes.push("");
    const [first, ...others] = changes;
    return first === undefined ? [] : [{ line, before, after: random.pick([first, ...others]) }];
  });
}

function* changesOf(code: string, line: string): Generator<string> {
  for (const [pattern, change] of SWAPS) {
    for (const found of code.matchAll(pattern)) {
      const after = typeof change === "string" ? change : change(found);
      yield line.slice(0, found.index) + after + line.slice(found.index + found[0].length);
    }
  }
}

const COMMENT_OR_TEXT =
  /\/\*[\s\S]*?\*\/|\/\/.*$|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|`(?:[^`\\]|\\[\s\S])*`|(?<=[(=,:[!&|?{;]\s*|\breturn )\/(?![*/])(?:[^/\\\n[]|\\.|\[(?:[^\]\\\n]|\\.)*\])+\/[dgimsuvy]*/gm;

/** The same code with `_` in the place of comments, strings and regular expressions. */
function withoutTexts(text: string): string {
  return text.replace(COMMENT_OR_TEXT, (token) =>
    token.replace(/[^\n]/g, token.startsWith("/*") ? " " : "_"),
  );
}
