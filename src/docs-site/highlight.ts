/** The kinds of tokens; the style sheet has a colour for each. */
type Kind = "comment" | "string" | "number" | "keyword" | "property" | "variable";

/** Each pattern has one named group per kind; the first that matches wins. */
const JSON_TOKENS = [
  String.raw`(?<property>"(?:[^"\\\n]|\\.)*"(?=\s*:))`,
  String.raw`(?<string>"(?:[^"\\\n]|\\.)*")`,
  String.raw`(?<number>-?\b\d+(?:\.\d+)?(?:[eE][+-]?\d+)?\b)`,
  String.raw`(?<keyword>\b(?:true|false|null)\b)`,
].join("|");

const SCRIPT_KEYWORDS =
  "as|async|await|break|case|catch|class|const|continue|default|else|export|finally|for|from|function|if|import|in|instanceof|let|new|of|return|throw|try|type|typeof|undefined|while|true|false|null";

const SCRIPT_TOKENS = [
  String.raw`(?<comment>\/\/.*|\/\*[\s\S]*?\*\/)`,
  String.raw`(?<string>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|${"`(?:[^`\\\\]|\\\\[\\s\\S])*`"})`,
  String.raw`(?<number>\b\d[\d_]*(?:\.\d+)?n?\b)`,
  String.raw`(?<keyword>\b(?:${SCRIPT_KEYWORDS})\b)`,
  String.raw`(?<property>(?<=[{,]\s*)[A-Za-z_]\w*(?=:\s))`,
].join("|");

const PYTHON_KEYWORDS =
  "and|as|assert|break|class|continue|def|elif|else|except|finally|for|from|if|import|in|is|lambda|not|or|pass|raise|return|try|while|with|yield|True|False|None";

const PYTHON_TOKENS = [
  String.raw`(?<comment>#.*)`,
  String.raw`(?<string>[fr]?(?:"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'))`,
  String.raw`(?<number>\b\d[\d_]*(?:\.\d+)?\b)`,
  String.raw`(?<keyword>\b(?:${PYTHON_KEYWORDS})\b)`,
  String.raw`(?<property>(?<=[(,]\s*)[A-Za-z_]\w*(?==))`,
].join("|");

const SHELL_TOKENS = [
  String.raw`(?<comment>(?<=^|\s)#.*)`,
  String.raw`(?<string>'[^']*'|"(?:[^"\\]|\\[\s\S])*")`,
  String.raw`(?<variable>\$\w+|\$\{\w+\}|^\w+(?==))`,
  String.raw`(?<keyword>(?<=^|[|;]\s*|\$\()(?:curl|npm|npx|petstore|sed|while|do|done|if|then|fi|export)\b)`,
  String.raw`(?<property>(?<=\s)--?[A-Za-z][\w-]*)`,
].join("|");

const HTTP_TOKENS = [
  String.raw`(?<keyword>^HTTP\/1\.1 \d+.*|^(?:GET|POST|PATCH|HEAD) )`,
  String.raw`(?<property>^[A-Za-z][\w-]*(?=: ))`,
  JSON_TOKENS.replace("(?<property>", "(?<variable>"),
].join("|");

const PATTERNS: Readonly<Record<string, RegExp>> = {
  json: new RegExp(JSON_TOKENS, "gm"),
  js: new RegExp(SCRIPT_TOKENS, "gm"),
  ts: new RegExp(SCRIPT_TOKENS, "gm"),
  python: new RegExp(PYTHON_TOKENS, "gm"),
  sh: new RegExp(SHELL_TOKENS, "gm"),
  http: new RegExp(HTTP_TOKENS, "gm"),
};

export interface Token {
  /** Undefined for what has no colour. */
  readonly kind?: Kind;
  readonly text: string;
}

/** The tokens of a program text. Text of an unknown syntax is one token. */
export function tokensOf(code: string, syntax: string): readonly Token[] {
  const pattern = PATTERNS[syntax];
  if (pattern === undefined) return [{ text: code }];
  const tokens: Token[] = [];
  let end = 0;
  for (const match of code.matchAll(pattern)) {
    if (match.index > end) tokens.push({ text: code.slice(end, match.index) });
    tokens.push({ kind: kindOf(match), text: match[0] });
    end = match.index + match[0].length;
  }
  if (end < code.length) tokens.push({ text: code.slice(end) });
  return tokens;
}

function kindOf({ groups = {} }: RegExpExecArray): Kind {
  return Object.keys(groups).find((kind) => groups[kind] !== undefined) as Kind;
}

/** HTML of a program text in which each token is a `<span>` of its kind. */
export function highlight(code: string, syntax: string): string {
  return tokensOf(code, syntax)
    .map(({ kind, text }) =>
      kind === undefined
        ? Bun.escapeHTML(text)
        : `<span class="token-${kind}">${Bun.escapeHTML(text)}</span>`,
    )
    .join("");
}
