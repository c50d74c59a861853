/** Colours have four meanings and are used for nothing else. Each comes with a shape and a word. */
export const SYMBOLS = {
  ok: "●",
  limited: "▲",
  error: "■",
  deprecated: "◇",
  muted: "○",
} as const;

export type Meaning = keyof typeof SYMBOLS;
