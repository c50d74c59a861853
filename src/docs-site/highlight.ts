/** Each pattern has one named group per kind; the first that matches wins. The style sheet has a colour for each. */
const JSON_TOKENS = [
  String.raw`(?<property>"(?:[^"\\\n]|\\.)*"(?=\s*:))`,
  String.raw`(?<string>"(?:[^"\\\n]|\\.)*")`,
  String.raw`(?<number>-?\b\d+(?:\.\d+)?(?:[eE][+-]?\d+)?\b)`,
  String.raw`(?<keyword>\b(?:true|false|null)\b)`,
].join("|");

const KEYWORDS =
  "and|as|async|await|break|case|catch|class|const|continue|def|default|elif|else|except|export|finally|for|from|function|if|import|in|instanceof|is|lambda|let|new|not|of|or|pass|raise|return|throw|try|type|typeof|undefined|while|with|yield|true|false|null|True|False|None";

/** JavaScript, TypeScript and Python. */
const PROGRAM_TOKENS = [
  String.raw`(?<comment>(?:\/\/|#).*|\/\*[\s\S]*?\*\/)`,
  String.raw`(?<string>f?"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|${"`(?:[^`\\\\]|\\\\[\\s\\S])*`"})`,
  String.raw`(?<number>\b\d[\d_]*(?:\.\d+)?n?\b)`,
  String.raw`(?<keyword>\b(?:${KEYWORDS})\b)`,
  String.raw`(?<property>(?<=[{,(]\s*)[A-Za-z_]\w*(?=:\s|=))`,
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

const PATTERNS: Readonly<Record<string, string>> = {
  json: JSON_TOKENS,
  js: PROGRAM_TOKENS,
  ts: PROGRAM_TOKENS,
  python: PROGRAM_TOKENS,
  sh: SHELL_TOKENS,
  http: HTTP_TOKENS,
};

/** HTML of a program text in which each token is a `<span>` of its kind. Text of an unknown syntax has none. */
export function highlight(code: string, syntax: string): string {
  const html = code.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
  const pattern = PATTERNS[syntax];
  if (pattern === undefined) return html;
  return html.replace(new RegExp(pattern, "gm"), (token, ...rest) => {
    const groups: Readonly<Record<string, string | undefined>> = rest.at(-1);
    const [kind] = Object.entries(groups).find(([, text]) => text !== undefined) ?? [];
    return `<span class="token-${kind}">${token}</span>`;
  });
}
