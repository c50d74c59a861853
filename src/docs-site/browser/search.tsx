import { render } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { SearchEntry } from "../page-data.ts";
import { urlOf } from "./page-controls.ts";
import { excerptOf, markedParts, type Match, SearchIndex, type SearchResult } from "./search-matches.ts";

/** Adds the search to the header. `/`, Ctrl+K and ⌘K focus it, the arrow keys choose a result, Enter opens it. */
export function startSearch(): void {
  const container = document.querySelector<HTMLElement>(".search");
  const indexUrl = container?.dataset["index"];
  if (container !== null && indexUrl !== undefined) render(<Search indexUrl={indexUrl} />, container);
}

let index: Promise<SearchIndex> | undefined;

/** The index is loaded when it is needed first. After a failure the next key tries again. */
async function loadIndex(url: string): Promise<SearchIndex | undefined> {
  try {
    return await (index ??= fetch(url).then(async (response) => {
      const entries: readonly SearchEntry[] = await response.json();
      return new SearchIndex(entries);
    }));
  } catch {
    return (index = undefined);
  }
}

function Search({ indexUrl }: { readonly indexUrl: string }) {
  const input = useRef<HTMLInputElement>(null);
  const list = useRef<HTMLUListElement>(null);
  /** Undefined while the list is closed. */
  const [result, setResult] = useState<SearchResult>();
  const { matches = [], corrections = [] } = result ?? {};
  const [chosen, setChosen] = useState(0);
  const close = () => setResult(undefined);
  const chosenItem = () => list.current?.querySelectorAll("li:not([aria-disabled])")[chosen];

  // An effect after the first paint would be too late: people press the key before.
  useLayoutEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (!isShortcut(event)) return;
      event.preventDefault();
      input.current?.focus();
      input.current?.select();
    };
    document.addEventListener("keydown", onKey);
    document.addEventListener("click", ({ target }) => {
      if (target instanceof Element && target.closest(".search") === null) close();
    });
  }, []);
  useEffect(() => chosenItem()?.scrollIntoView({ block: "nearest" }), [chosen, result]);

  async function show() {
    const loaded = await loadIndex(indexUrl);
    const query = input.current?.value.trim() ?? "";
    setResult(query === "" ? undefined : loaded?.search(query));
    setChosen(0);
  }

  function onKeyDown(event: KeyboardEvent) {
    const count = matches.length;
    if (event.key === "Escape") {
      close();
      input.current?.blur();
    } else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      const step = event.key === "ArrowDown" ? 1 : -1;
      if (count > 0) setChosen((chosen + step + count) % count);
    } else if (event.key === "Enter") {
      event.preventDefault();
      chosenItem()?.querySelector("a")?.click();
      close();
    }
  }

  return (
    <>
      <input
        ref={input}
        type="search"
        role="combobox"
        list={undefined}
        placeholder="Search"
        title="Press / or Ctrl+K to search"
        autocomplete="off"
        aria-label="Search the documentation"
        aria-autocomplete="list"
        aria-controls="search-results"
        aria-keyshortcuts="/ Control+K Meta+K"
        aria-expanded={result !== undefined}
        aria-activedescendant={matches.length > 0 ? `search-result-${chosen}` : undefined}
        onFocus={() => void loadIndex(indexUrl)}
        onInput={() => void show()}
        onKeyDown={onKeyDown}
      />
      <ul ref={list} id="search-results" role="listbox" aria-label="Results" hidden={result === undefined}>
        {(matches.length === 0 || corrections.length > 0) && (
          <li role="option" aria-disabled>
            {matches.length === 0
              ? "Nothing found. Try fewer words, or the name of a field, a header or an error code."
              : `Showing results for “${corrections.join(" ")}”`}
          </li>
        )}
        {matches.map((match, index) => (
          <li
            key={match.entry[2]}
            role="option"
            id={`search-result-${index}`}
            aria-selected={index === chosen}
          >
            <Result {...match} />
          </li>
        ))}
      </ul>
    </>
  );
}

function Result({ entry: [page, section, url, text, operation], terms }: Match) {
  const [method, path, id] = operation?.split(" ") ?? [];
  const excerpt = excerptOf(text, terms);
  const details = [section === "" ? id : page, excerpt].filter((each) => each !== undefined && each !== "");
  return (
    <a href={urlOf(`/${url}`)} tabIndex={-1}>
      <span class="result-title">
        {method !== undefined && (
          <>
            <span class="method" data-method={method}>
              {method}
            </span>{" "}
            <code>
              <Marked text={path ?? ""} terms={terms} />
            </code>{" "}
          </>
        )}
        <Marked text={section === "" ? page : section} terms={terms} />
      </span>
      <span class="result-text">
        <Marked text={details.join(" · ")} terms={terms} />
      </span>
    </a>
  );
}

function Marked({ text, terms }: { readonly text: string; readonly terms: readonly string[] }) {
  return (
    <>
      {markedParts(text, terms).map((part, index) =>
        index % 2 === 1 ? <mark key={index}>{part}</mark> : part,
      )}
    </>
  );
}

/** A `/` that is typed is text; the other shortcuts work everywhere. */
function isShortcut({ key, ctrlKey, metaKey, altKey, target }: KeyboardEvent): boolean {
  if (altKey) return false;
  if (ctrlKey || metaKey) return key.toLowerCase() === "k";
  return key === "/" && !isTyping(target);
}

function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && target.matches("input:not([type=radio]), textarea, select");
}
