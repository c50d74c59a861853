import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { announce } from "../observable.ts";
import { navigate, urlWith, useLocation } from "../router.ts";

export function hasFilters(query: URLSearchParams): boolean {
  return [...query.keys()].some((name) => !["sort", "order", "cursor"].includes(name));
}

/** Filters are in the URL, so that a list can be shared and reloaded. */
export function Filters({ children }: { readonly children: ComponentChildren }) {
  const { path, query } = useLocation();
  return (
    <div class="filters" role="search">
      {children}
      {hasFilters(query) && <a href={path}>Clear filters</a>}
    </div>
  );
}

type Option = string | readonly [value: string, text: string];

interface UrlSelectProps {
  readonly name: string;
  readonly options: readonly Option[];
  /** The value that the URL leaves out. */
  readonly initial: string;
  readonly "aria-label"?: string;
}

/** One of a few values of a parameter in the URL. */
export function UrlSelect({ name, options, initial, ...attributes }: UrlSelectProps) {
  const { query } = useLocation();
  const pairs = options.map((option) => (typeof option === "string" ? ([option, option] as const) : option));
  const given = query.get(name);
  const choose = (value: string) => navigate(urlWith({ [name]: value === initial ? "" : value }));
  return (
    <select
      {...attributes}
      value={pairs.find(([value]) => value === given)?.[0] ?? initial}
      onChange={(event) => choose(event.currentTarget.value)}
    >
      {pairs.map(([value, text]) => (
        <option key={value} value={value}>
          {text}
        </option>
      ))}
    </select>
  );
}

interface SelectFilterProps {
  readonly label: string;
  readonly name: string;
  readonly options: readonly Option[];
  /** The first option: no filter. */
  readonly all?: string;
}

export function SelectFilter({ label, name, options, all = "All" }: SelectFilterProps) {
  return (
    <label>
      {label}
      <UrlSelect name={name} options={[["", all], ...options]} initial="" />
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
  /** Takes the secret of a key, which must not get into the URL. */
  readonly onSecret?: (secret: string) => void;
}

/** More of a secret than its hint. It belongs into no history. */
const SECRET = /pet_(?:live|test|admin)_[\w-]{5,}/;

/** The URL follows the typing after a pause, and replaces itself, so that Back leaves the list. */
export function TextFilter(props: TextFilterProps) {
  const { label, name, type = "text", onSecret, ...attributes } = props;
  const { query } = useLocation();
  const inUrl = query.get(name) ?? "";
  const [text, setText] = useState(inUrl);
  const input = useRef<HTMLInputElement>(null);
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  useEffect(() => {
    if (document.activeElement !== input.current || inUrl === "") setText(inUrl);
  }, [inUrl]);
  useEffect(() => () => clearTimeout(timer.current), []);
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
          const [secret] = SECRET.exec(value) ?? [];
          if (secret !== undefined) {
            setText((event.currentTarget.value = ""));
            return onSecret ? onSecret(secret) : announce("That is a secret: it is not searched for.");
          }
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

/** `/` moves to the search of the page. */
export function startSearchKey(): void {
  document.addEventListener("keydown", (event) => {
    const search = document.querySelector<HTMLElement>("main input[type=search]");
    const isTyping =
      event.target instanceof Element && event.target.closest("input, select, textarea, dialog") !== null;
    if (event.key !== "/" || search === null || isTyping || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    search.focus();
  });
}
