import { KEY_PREFIX } from "../../domain/constants.ts";
import { baseUrlOf, type DocumentedSettings } from "../../petstore/documented-settings.ts";

/** The languages of the examples, in the order in which pages show them. */
export const EXAMPLE_LANGUAGES = {
  curl: { label: "curl", syntax: "sh" },
  typescript: { label: "TypeScript", syntax: "ts" },
  fetch: { label: "fetch", syntax: "js" },
  python: { label: "Python", syntax: "python" },
} as const;
export type ExampleLanguage = keyof typeof EXAMPLE_LANGUAGES;

/** A program that runs as it is, once `key` is an API key. */
export interface Example {
  readonly language: ExampleLanguage;
  /** Without a newline at its end. */
  readonly code: string;
}

/** What the examples take from the configuration of a server. */
export interface ExampleContext {
  /** With the base path and without a slash at its end: `http://127.0.0.1:8080/v1`. */
  readonly baseUrl: string;
  readonly key: string;
}

/** The address of the server and a placeholder that says where the API key belongs. */
export function exampleContext(settings: DocumentedSettings): ExampleContext {
  return { baseUrl: baseUrlOf(settings), key: `${KEY_PREFIX[settings.environment]}YOUR_KEY` };
}

/** A text for each language; pages have either all of them or none. */
export type ExampleTemplates = Readonly<Record<ExampleLanguage, (context: ExampleContext) => string>>;

export function render(templates: ExampleTemplates, context: ExampleContext): readonly Example[] {
  const { curl, typescript, fetch, python } = templates;
  return [
    { language: "curl", code: curl(context) },
    { language: "typescript", code: typescript(context) },
    { language: "fetch", code: fetch(context) },
    { language: "python", code: python(context) },
  ];
}
