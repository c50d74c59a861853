import { EXAMPLE_LANGUAGES, type Example, type ExampleLanguage } from "../examples/example.ts";
import { highlight } from "./highlight.ts";

/** What scrolls on a narrow screen can be scrolled with the keyboard. */
function preformatted(code: string, syntax: string): string {
  return `<pre tabindex="0" data-syntax="${Bun.escapeHTML(syntax)}"><code>${highlight(code, syntax)}</code></pre>`;
}

const SYNTAX_NAMES: Readonly<Record<string, string>> = {
  sh: "Shell",
  http: "HTTP",
  json: "JSON",
  ts: "TypeScript",
  js: "JavaScript",
  python: "Python",
};

/** A code block with a title, by default the name of its syntax. */
export function codeBlock(code: string, syntax: string, title = SYNTAX_NAMES[syntax] ?? ""): string {
  return `<div class="code"><div class="code-title">${Bun.escapeHTML(title)}</div>${preformatted(code, syntax)}</div>`;
}

/** For the search. */
export function languagesOf(examples: readonly Example[]): string {
  return `Examples: ${examples.map(({ language }) => EXAMPLE_LANGUAGES[language].label).join(", ")}`;
}

/** Numbers the groups of one page, because radio buttons with the same name belong together. */
export class ExampleTabs {
  #groups = 0;

  /** One tab per language. They are radio buttons, so they work without JavaScript; a script keeps the choice. */
  render(examples: readonly Example[]): string {
    const name = `language-${++this.#groups}`;
    const tabs = examples.map(({ language }, index) => tab({ name, language, isChecked: index === 0 }));
    const panels = examples.map(
      ({ language, code }) =>
        `<div class="code" data-language="${language}">${preformatted(code, EXAMPLE_LANGUAGES[language].syntax)}</div>`,
    );
    return `<fieldset class="example"><legend class="visually-hidden">Language of the example</legend><div class="tabs">${tabs.join("")}</div>${panels.join("")}</fieldset>`;
  }
}

interface Tab {
  readonly name: string;
  readonly language: ExampleLanguage;
  readonly isChecked: boolean;
}

function tab({ name, language, isChecked }: Tab): string {
  const checked = isChecked ? " checked" : "";
  return `<label><input type="radio" name="${name}" value="${language}"${checked}>${EXAMPLE_LANGUAGES[language].label}</label>`;
}
