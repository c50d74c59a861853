/**
 * The URLs of the console's pages. The server sends the same page for each, and the console shows what the URL names.
 */
export const PAGES = {
  Overview: "/",
  Keys: "/keys",
  "Create a key": "/keys/new",
  "Edit a key": "/keys/{id}/edit",
  Key: "/keys/{id}",
  Plans: "/plans",
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

export const PAGE_NAMES = Object.keys(PAGES) as PageName[];
const PATTERNS = PAGE_NAMES.map((name) => ({
  name,
  pattern: new RegExp(`^${PAGES[name].replace("{id}", String.raw`([1-9]\d{0,18})`)}$`),
}));

/** Finds the page of a path. The identifier consists of decimal digits; it is empty if the page has none. */
export function matchPage(path: string): { readonly name: PageName; readonly id: string } | undefined {
  for (const { name, pattern } of PATTERNS) {
    const match = pattern.exec(path);
    if (match !== null) return { name, id: match[1] ?? "" };
  }
  return undefined;
}
