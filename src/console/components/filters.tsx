import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { navigate, urlWith, usePlace } from "../router.ts";

/** Filters are in the URL, so that a list can be shared and reloaded. */
export function Filters({ children }: { readonly children: ComponentChildren }) {
  const place = usePlace();
  const isFiltered = [...place.query.keys()].some((name) => !["sort", "order", "cursor"].includes(name));
  return (
    <div class="filters" role="search">
      {children}
      {isFiltered && <a href={place.path}>Clear filters</a>}
    </div>
  );
}

interface SelectFilterProps {
  readonly label: string;
  readonly name: string;
  readonly options: readonly (readonly [value: string, text: string])[];
  /** The first option: no filter. */
  readonly all?: string;
}

export function SelectFilter({ label, name, options, all = "All" }: SelectFilterProps) {
  const { query } = usePlace();
  return (
    <label>
      {label}
      <select
        value={query.get(name) ?? ""}
        onChange={(event) => navigate(urlWith({ [name]: event.currentTarget.value }))}
      >
        <option value="">{all}</option>
        {options.map(([value, text]) => (
          <option key={value} value={value}>
            {text}
          </option>
        ))}
      </select>
    </label>
  );
}

/** Each is its own type of input in the type declarations. */
const TYPES = { search: { type: "search" }, text: { type: "text" }, date: { type: "date" } } as const;
const TYPING_MS = 200;

interface TextFilterProps {
  readonly label: string;
  readonly name: string;
  readonly type?: "search" | "text" | "date";
  readonly placeholder?: string;
  readonly maxLength?: number;
  /** `/` leads here. */
  readonly hasShortcut?: boolean;
  /** Takes a text that must not be in the URL; true if it did. */
  readonly intercept?: (text: string) => boolean;
}

/** The URL follows the typing after a pause, and replaces itself, so that Back leaves the list. */
export function TextFilter(props: TextFilterProps) {
  const { label, name, type = "text", hasShortcut = false, intercept, ...attributes } = props;
  const { query } = usePlace();
  const inUrl = query.get(name) ?? "";
  const [text, setText] = useState(inUrl);
  const input = useRef<HTMLInputElement>(null);
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  useEffect(() => {
    if (document.activeElement !== input.current || inUrl === "") setText(inUrl);
  }, [inUrl]);
  // Before the search is painted: who sees it can use its shortcut.
  useLayoutEffect(() => {
    if (!hasShortcut) return;
    const onKey = (event: KeyboardEvent) => {
      const isTyping =
        event.target instanceof Element && event.target.closest("input, select, textarea, dialog") !== null;
      if (event.key !== "/" || isTyping || event.ctrlKey || event.metaKey) return;
      event.preventDefault();
      input.current?.focus();
    };
    document.addEventListener("keydown", onKey);
    return () => document.removeEventListener("keydown", onKey);
  }, [hasShortcut]);
  return (
    <label class={type === "search" ? "search" : undefined}>
      {label}
      <input
        ref={input}
        {...TYPES[type]}
        value={text}
        autocomplete="off"
        onInput={(event) => {
          const { value } = event.currentTarget;
          setText(value);
          clearTimeout(timer.current);
          if (intercept?.(value.trim())) return setText("");
          timer.current = setTimeout(
            () => navigate(urlWith({ [name]: value.trim() }), { replace: true }),
            TYPING_MS,
          );
        }}
        {...attributes}
      />
    </label>
  );
}
