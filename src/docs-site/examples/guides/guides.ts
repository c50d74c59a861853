import type { ExampleTemplates } from "../example.ts";
import { PAGINATION } from "./pagination.ts";

/** The examples that belong to a guide and not to one operation. */
export const GUIDE_EXAMPLES = {
  pagination: PAGINATION,
} as const satisfies Readonly<Record<string, ExampleTemplates>>;

export type GuideExample = keyof typeof GUIDE_EXAMPLES;
