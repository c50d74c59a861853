import type { SearchEntry } from "../search-index.ts";
import { bestMatches } from "./search-matches.ts";

/** Adds the search to the header. `/` focuses it, the arrow keys choose a result, Enter opens it. */
export function startSearch(): void {
  const place = document.querySelector<HTMLElement>(".search");
  const indexUrl = place?.dataset["index"];
  if (place === null || indexUrl === undefined) return;
  const search = new Search(indexUrl);
  place.append(search.input, search.list);
  document.addEventListener("keydown", (event) => {
    if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
    event.preventDefault();
    search.input.focus();
  });
  document.addEventListener("click", ({ target }) => {
    if (!(target instanceof Node) || !place.contains(target)) search.close();
  });
}

function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && target.matches("input:not([type=radio]), textarea, select");
}

class Search {
  readonly input = document.createElement("input");
  readonly list = document.createElement("ul");
  readonly #indexUrl: string;
  #entries: Promise<readonly SearchEntry[]> | undefined;
  #chosen = 0;

  constructor(indexUrl: string) {
    this.#indexUrl = indexUrl;
    const { input, list } = this;
    list.id = "search-results";
    list.role = "listbox";
    list.ariaLabel = "Results";
    list.hidden = true;
    input.type = "search";
    input.role = "combobox";
    input.placeholder = "Search";
    input.autocomplete = "off";
    input.ariaLabel = "Search the documentation";
    input.ariaExpanded = "false";
    input.ariaAutoComplete = "list";
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
  const item = document.createElement("li");
  item.role = "option";
  item.id = `search-result-${index}`;
  const link = document.createElement("a");
  link.href = (document.documentElement.dataset["root"] ?? "") + url;
  link.tabIndex = -1;
  link.append(line("result-title", section === "" ? page : section));
  link.append(line("result-text", section === "" ? text : `${page}${text === "" ? "" : ` · ${text}`}`));
  item.append(link);
  return item;
}

function line(className: string, text: string): HTMLElement {
  const element = document.createElement("span");
  element.className = className;
  element.textContent = text;
  return element;
}

function nothing(): HTMLElement {
  const item = document.createElement("li");
  item.role = "option";
  item.ariaDisabled = "true";
  item.textContent = "Nothing found";
  return item;
}
