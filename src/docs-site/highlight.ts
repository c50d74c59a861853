/** Each pattern has one named group per kind; the first that matches wins. The style sheet has a colour for each. */
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

/** HTML of a program text in which each token is a `<span>` of its kind. Text of an unknown syntax has none. */
export function highlight(code: string, syntax: string): string {
  const html = code.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
  const pattern = PATTERNS[syntax];
  if (pattern === undefined) return html;
  return html.replace(
    pattern,
    (token, ...rest) => `<span class="token-${kindOf(rest.at(-1))}">${token}</span>`,
  );
}

function kindOf(groups: Readonly<Record<string, string | undefined>>): string | undefined {
  return Object.entries(groups).find(([, text]) => text !== undefined)?.[0];
}
