import { standardError } from "../standard-streams.ts";

/** Longer than any secret with everything that is pasted along with it. */
const MAX_LENGTH = 4_096;
const CTRL_C = "\u0003";
const CTRL_D = "\u0004";
/** Terminals send either. */
const BACKSPACE = "\u0008\u007f";

/** The terminal or the pipe of standard input. */
export interface SecretInput extends AsyncIterable<string | Uint8Array> {
  readonly isTTY?: boolean;
  setRawMode?(isRaw: boolean): unknown;
}

/** Reads one line. A terminal does not show it, and the prompt goes to standard error. */
export async function readSecret(input: SecretInput, prompt: string): Promise<string> {
  if (input.isTTY !== true) return readLine(input);
  // Before the prompt: nothing that is typed after it is shown.
  input.setRawMode?.(true);
  try {
    standardError().write(prompt);
    return await readLine(input);
  } finally {
    input.setRawMode?.(false);
    standardError().write("\n");
  }
}

/** A terminal in raw mode passes on the keys that end or correct a line. */
async function readLine(input: SecretInput): Promise<string> {
  const decoder = new TextDecoder();
  let line = "";
  for await (const chunk of input) {
    const text = typeof chunk === "string" ? chunk : decoder.decode(chunk, { stream: true });
    for (const character of text) {
      if (character === "\n" || character === "\r" || character === CTRL_D) return line;
      if (character === CTRL_C) throw new Interrupted();
      if (BACKSPACE.includes(character)) line = line.slice(0, -1);
      else if (line.length < MAX_LENGTH) line += character;
    }
  }
  return line;
}

/** The user pressed Ctrl-C. */
export class Interrupted extends Error {
  override readonly name = "Interrupted";
}
