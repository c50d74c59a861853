import { render } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { SearchEntry } from "../page-data.ts";
import { urlOf } from "./page-controls.ts";
import { bestMatches, excerptOf, markedParts, type Match } from "./search-matches.ts";

/** Adds the search to the header. `/` focuses it, the arrow keys choose a result, Enter opens it. */
export function startSearch(): void {
  const container = document.querySelector<HTMLElement>(".search");
  const indexUrl = container?.dataset["index"];
  if (container !== null && indexUrl !== undefined) render(<Search indexUrl={indexUrl} />, container);
}

let index: Promise<readonly SearchEntry[]> | undefined;

/** The index is loaded when it is needed first. After a failure the next key tries again. */
async function loadIndex(url: string): Promise<readonly SearchEntry[]> {
  try {
    return await (index ??= fetch(url).then((response) => response.json()));
  } catch {
    index = undefined;
    return [];
  }
}

function Search({ indexUrl }: { readonly indexUrl: string }) {
  const input = useRef<HTMLInputElement>(null);
  const list = useRef<HTMLUListElement>(null);
  /** Undefined while the list is closed. */
  const [matches, setMatches] = useState<readonly Match[]>();
  const [chosen, setChosen] = useState(0);
  const close = () => setMatches(undefined);

  // An effect after the first paint would be too late: people press the key before.
  useLayoutEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target))
        return;
      event.preventDefault();
      input.current?.focus();
    };
    document.addEventListener("keydown", onKey);
    document.addEventListener("click", ({ target }) => {
      if (target instanceof Element && target.closest(".search") === null) close();
    });
  }, []);
  useEffect(() => list.current?.children[chosen]?.scrollIntoView({ block: "nearest" }), [chosen, matches]);

  async function show() {
    const entries = await loadIndex(indexUrl);
    const query = input.current?.value.trim() ?? "";
    setMatches(query === "" ? undefined : bestMatches(entries, query));
    setChosen(0);
  }

  function onKeyDown(event: KeyboardEvent) {
    const count = matches?.length ?? 0;
    if (event.key === "Escape") {
      close();
      input.current?.blur();
    } else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      const step = event.key === "ArrowDown" ? 1 : -1;
      if (count > 0) setChosen((chosen + step + count) % count);
    } else if (event.key === "Enter") {
      event.preventDefault();
      list.current?.children[chosen]?.querySelector("a")?.click();
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
        title="Press / to search"
        autocomplete="off"
        aria-label="Search the documentation"
        aria-autocomplete="list"
        aria-controls="search-results"
        aria-keyshortcuts="/"
        aria-expanded={matches !== undefined}
        aria-activedescendant={matches?.length ? `search-result-${chosen}` : undefined}
        onFocus={() => void loadIndex(indexUrl)}
        onInput={() => void show()}
        onKeyDown={onKeyDown}
      />
      <ul ref={list} id="search-results" role="listbox" aria-label="Results" hidden={matches === undefined}>
        {matches?.length === 0 && (
          <li role="option" aria-disabled>
            Nothing found
          </li>
        )}
        {matches?.map((match, index) => (
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

function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && target.matches("input:not([type=radio]), textarea, select");
}
