import { render } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { useCombobox } from "../../pages/combobox.ts";
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

/** The index is loaded when it is needed first. Undefined if that fails: the next call tries again. */
async function loadIndex(url: string): Promise<SearchIndex | undefined> {
  try {
    return await (index ??= fetch(url).then(async (response) => {
      if (!response.ok) throw new Error(`The server responds ${response.status}.`);
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
  const [result, setResult] = useState<SearchResult | "failed">();
  const isFailed = result === "failed";
  const { matches = [], corrections = [] } = isFailed ? {} : (result ?? {});
  const close = () => setResult(undefined);
  const { input: comboboxInput, ...box } = useCombobox("search-results", matches.length, (i) => {
    list.current?.querySelectorAll("a")[i]?.click();
    close();
  });

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

  async function show() {
    const loaded = await loadIndex(indexUrl);
    const query = input.current?.value.trim() ?? "";
    setResult(query === "" ? undefined : (loaded?.search(query) ?? "failed"));
    box.choose(0);
  }

  function onKeyDown(event: KeyboardEvent) {
    if (event.key === "Enter" && isFailed) void show();
    if (event.key !== "Escape") return comboboxInput.onKeyDown(event);
    close();
    input.current?.blur();
  }

  return (
    <>
      <input
        ref={input}
        type="search"
        {...comboboxInput}
        list={undefined}
        placeholder="Search"
        title="Press / or Ctrl+K to search"
        aria-label="Search the documentation"
        aria-keyshortcuts="/ Control+K Meta+K"
        aria-expanded={result !== undefined}
        onFocus={() => void loadIndex(indexUrl)}
        onInput={() => void show()}
        onKeyDown={onKeyDown}
      />
      <div class="search-problem" role="alert" hidden={!isFailed}>
        {isFailed && (
          <>
            The search could not be loaded.{" "}
            <button type="button" class="button" onClick={() => void show()}>
              Try again
            </button>
          </>
        )}
      </div>
      <ul ref={list} {...box.list} aria-label="Results" hidden={result === undefined || isFailed}>
        {(matches.length === 0 || corrections.length > 0) && (
          <li role="option" aria-disabled>
            {matches.length === 0
              ? "Nothing found. Try fewer words, or the name of a field, a header or an error code."
              : `Showing results for “${corrections.join(" ")}”`}
          </li>
        )}
        {matches.map((match, index) => (
          <li key={match.entry[2]} {...box.option(index)}>
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
