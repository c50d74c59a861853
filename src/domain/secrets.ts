/** The beginning of every API key, by environment. */
export const KEY_PREFIX = { production: "pet_live_", staging: "pet_test_" } as const;

/** API keys and tokens of operators, which clients also send in wrong places. The log keeps the prefix. */
export const SECRET = /(pet_(?:live|test|admin)_)[\w-]+/g;

export function maskSecrets(text: string): string {
  return text.replace(SECRET, "$1…");
}
