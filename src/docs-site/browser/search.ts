import type { SearchEntry } from "../page-data.ts";
import { bestMatches } from "./search-matches.ts";

/** Adds the search to the header. `/` focuses it, the arrow keys choose a result, Enter opens it. */
export function startSearch(): void {
  const container = document.querySelector<HTMLElement>(".search");
  const indexUrl = container?.dataset["index"];
  if (container === null || indexUrl === undefined) return;
  const search = new Search(indexUrl);
  container.append(search.input, search.list);
  document.addEventListener("keydown", (event) => {
    if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
    event.preventDefault();
    search.input.focus();
  });
  document.addEventListener("click", ({ target }) => {
    if (!(target instanceof Node) || !container.contains(target)) search.close();
  });
}

function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && target.matches("input:not([type=radio]), textarea, select");
}

class Search {
  readonly list = element("ul", {
    id: "search-results",
    role: "listbox",
    ariaLabel: "Results",
    hidden: true,
  });
  readonly input = element("input", {
    type: "search",
    role: "combobox",
    placeholder: "Search",
    autocomplete: "off",
    ariaLabel: "Search the documentation",
    ariaExpanded: "false",
    ariaAutoComplete: "list",
  });
  readonly #indexUrl: string;
  #entries: Promise<readonly SearchEntry[]> | undefined;
  #chosen = 0;

  constructor(indexUrl: string) {
    this.#indexUrl = indexUrl;
    const { input, list } = this;
    input.setAttribute("aria-controls", list.id);
    input.setAttribute("aria-keyshortcuts", "/");
    input.addEventListener("focus", () => void this.#load());
    input.addEventListener("input", () => void this.#show());
    input.addEventListener("keydown", (event) => this.#onKey(event));
  }

  close(): void {
    this.list.hidden = true;
    this.input.ariaExpanded = "false";
    this.input.removeAttribute("aria-activedescendant");
  }

  /** The index is loaded when it is needed first. After a failure the next key tries again. */
  async #load(): Promise<readonly SearchEntry[]> {
    this.#entries ??= fetch(this.#indexUrl).then((response) => response.json());
    try {
      return await this.#entries;
    } catch {
      this.#entries = undefined;
      return [];
    }
  }

  async #show(): Promise<void> {
    const entries = await this.#load();
    const query = this.input.value.trim();
    if (query === "") return this.close();
    const matches = bestMatches(entries, query);
    this.list.replaceChildren(...(matches.length === 0 ? [nothing()] : matches.map(option)));
    this.list.hidden = false;
    this.input.ariaExpanded = "true";
    this.#choose(0);
  }

  get #options(): readonly HTMLElement[] {
    return [...this.list.querySelectorAll<HTMLElement>("[role=option]:not([aria-disabled])")];
  }

  #choose(index: number): void {
    const options = this.#options;
    if (options.length === 0) return this.input.removeAttribute("aria-activedescendant");
    this.#chosen = (index + options.length) % options.length;
    for (const [i, each] of options.entries()) each.ariaSelected = String(i === this.#chosen);
    const chosen = options[this.#chosen];
    if (chosen === undefined) return;
    chosen.scrollIntoView({ block: "nearest" });
    this.input.setAttribute("aria-activedescendant", chosen.id);
  }

  #onKey(event: KeyboardEvent): void {
    if (event.key === "Escape") {
      this.close();
      this.input.blur();
    } else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      this.#choose(this.#chosen + (event.key === "ArrowDown" ? 1 : -1));
    } else if (event.key === "Enter") {
      event.preventDefault();
      this.#options[this.#chosen]?.querySelector("a")?.click();
      this.close();
    }
  }
}

function option([page, section, url, text]: SearchEntry, index: number): HTMLElement {
  const details = section === "" ? text : `${page}${text === "" ? "" : ` · ${text}`}`;
  const href = (document.documentElement.dataset["root"] ?? "") + url;
  const link = element("a", { href, tabIndex: -1 });
  link.append(element("span", { className: "result-title", textContent: section === "" ? page : section }));
  link.append(element("span", { className: "result-text", textContent: details }));
  const item = element("li", { role: "option", id: `search-result-${index}` });
  item.append(link);
  return item;
}

function nothing(): HTMLElement {
  return element("li", { role: "option", ariaDisabled: "true", textContent: "Nothing found" });
}

function element<T extends keyof HTMLElementTagNameMap>(
  tag: T,
  properties: Partial<HTMLElementTagNameMap[T]>,
): HTMLElementTagNameMap[T] {
  return Object.assign(document.createElement(tag), properties);
}
