export type JsonPart = "key" | "string" | "number" | "word" | "punctuation" | "space";

export interface JsonToken {
  readonly part: JsonPart;
  readonly text: string;
}

const TOKEN = /[{}[\],:]|"[^"\\]*(?:\\.[^"\\]*)*"|[^\s{}[\],:"]+/g;

/**
 * JSON text with line breaks and indentation. Numbers are never parsed, so that their digits stay as they were sent.
 * Undefined if the text is not JSON.
 */
export function indentedJson(text: string): readonly JsonToken[] | undefined {
  if (!isJson(text)) return undefined;
  const tokens = text.match(TOKEN) ?? [];
  const result: JsonToken[] = [];
  const push = (part: JsonPart, token: string) => result.push({ part, text: token });
  let depth = 0;
  const newLine = () => push("space", `\n${"  ".repeat(depth)}`);

  for (const [index, token] of tokens.entries()) {
    const previous = tokens[index - 1];
    if (token === "}" || token === "]") {
      depth--;
      if (previous !== "{" && previous !== "[") newLine();
    } else if (previous === "{" || previous === "[" || previous === ",") newLine();
    push(partOf(token, tokens[index + 1]), token);
    if (token === "{" || token === "[") depth++;
    if (token === ":") push("space", " ");
  }
  return result;
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

function partOf(token: string, next: string | undefined): JsonPart {
  if (token.startsWith('"')) return next === ":" ? "key" : "string";
  if (/^[-\d]/.test(token)) return "number";
  return /^[a-z]/.test(token) ? "word" : "punctuation";
}
