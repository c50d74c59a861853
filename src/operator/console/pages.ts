/** The URLs of the console's pages: the server sends the page for these, and the console shows what they name. */
export const PAGES = {
  Overview: "/",
  Keys: "/keys",
  "Create a key": "/keys/new",
  "Edit a key": "/keys/{id}/edit",
  Key: "/keys/{id}",
  Pets: "/pets",
  "Add a pet": "/pets/new",
  Pet: "/pets/{id}",
  Orders: "/orders",
  Order: "/orders/{id}",
  Requests: "/requests",
  Audit: "/audit",
  Operators: "/operators",
  Settings: "/settings",
} as const;

export type PageName = keyof typeof PAGES;

interface PageMatch {
  readonly name: PageName;
  /** Decimal digits; empty if the page has no identifier. */
  readonly id: string;
}

const NAMES = Object.keys(PAGES) as PageName[];
const PATTERNS = NAMES.map((name) => ({
  name,
  pattern: new RegExp(`^${PAGES[name].replace("{id}", String.raw`([1-9]\d{0,18})`)}$`),
}));

export function matchPage(path: string): PageMatch | undefined {
  for (const { name, pattern } of PATTERNS) {
    const match = pattern.exec(path);
    if (match !== null) return { name, id: match[1] ?? "" };
  }
  return undefined;
}
