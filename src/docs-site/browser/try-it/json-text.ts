const TOKEN = /[{}[\],:]|"[^"\\]*(?:\\.[^"\\]*)*"|[^\s{}[\],:"]+/g;

/**
 * JSON text with line breaks and indentation. Numbers are never parsed, so that their digits stay as they were sent.
 * Undefined if the text is not JSON.
 */
export function indentedJson(text: string): string | undefined {
  if (!isJson(text)) return undefined;
  const tokens = text.match(TOKEN) ?? [];
  let result = "";
  let depth = 0;
  for (const [index, token] of tokens.entries()) {
    const previous = tokens[index - 1];
    const isFirst = previous === "{" || previous === "[";
    const isEnd = token === "}" || token === "]";
    if (isEnd) depth--;
    if (isEnd ? !isFirst : isFirst || previous === ",") result += `\n${"  ".repeat(depth)}`;
    result += token === ":" ? ": " : token;
    if (token === "{" || token === "[") depth++;
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
