import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { formatTime } from "../../text/formatting.ts";
import { SECRET_BEYOND_HINT } from "../../domain/masks.ts";
import { classesOf } from "../../pages/classes.ts";
import { capitalized, localInputOf } from "../../pages/format.ts";
import { navigate, urlWith } from "../router.ts";
import { announce, consoleState } from "../state.ts";
import { pairsOf, type UrlOption, UrlSelect } from "./url-choices.tsx";

interface Filter {
  /** The label; by default the name of the parameter. */
  readonly label?: string;
  /** The choices of a select. */
  readonly options?: readonly UrlOption[];
  /** The first option: no filter. */
  readonly all?: string;
  /** The type of an input. */
  readonly type?: keyof typeof TYPES;
  readonly placeholder?: string;
  /** Whether something else on the page than an input of its own sets it. */
  readonly isElsewhere?: boolean;
  /** Whether it is seldom needed, so that it is folded away until it is given. */
  readonly isRare?: boolean;
  /** The longest value that the server accepts. */
  readonly maxLength?: number;
  /** Takes the secret of a key, which must not get into the URL. */
  readonly onSecret?: (secret: string) => void;
}

/** The filters of a list, by the names of their parameters in the URL. */
export type FilterRows = Readonly<Record<string, Filter>>;

/** How many filters the URL has. What the page does not know is none. */
export function countFilters(query: URLSearchParams, filters: FilterRows): number {
  return [...query.keys()].filter((name) => Object.hasOwn(filters, name)).length;
}

interface FiltersProps {
  readonly filters: FilterRows;
  /** Whether nothing matches: what says so clears the filters, too. */
  readonly hasNoMatch?: boolean;
  readonly children?: ComponentChildren;
}

/** Filters are in the URL, so that a list can be shared and reloaded. A narrow screen shows the search alone. */
export function Filters({ filters, hasNoMatch = false, children }: FiltersProps) {
  const { query } = consoleState;
  const [isOpen, setOpen] = useState(false);
  const entries = Object.entries(filters).filter(([, { isElsewhere = false }]) => !isElsewhere);
  const others = entries.filter(([, { type }]) => type !== "search");
  const given = others.filter(([name]) => query.has(name)).length;
  return (
    <div role="search" class="filters" data-open={isOpen ? "" : undefined}>
      {entries.map(([name, filter]) => {
        const { label = capitalized(name), options, all = "All", type, isRare } = filter;
        const value = query.get(name);
        // The URL may have a value that only the server knows, or nobody.
        const isUnknown = value && !pairsOf(options ?? []).some(([known]) => known === value);
        const shape = { [type ?? ""]: true, rare: isRare && !query.has(name) };
        return (
          <label key={name} class={classesOf(shape)}>
            {label}
            {options ? (
              <UrlSelect
                name={name}
                options={[["", all], ...options, ...(isUnknown ? [value] : [])]}
                initial=""
              />
            ) : (
              <TextFilter name={name} {...filter} />
            )}
          </label>
        );
      })}
      {others.length > 0 && (
        <button
          type="button"
          class={others.some(([, { isRare }]) => isRare) ? "more" : "more narrow-only"}
          aria-expanded={isOpen}
          onClick={() => setOpen(!isOpen)}
        >
          {others.length < entries.length ? "More filters" : "Filters"}
          {given > 0 && <span class="narrow-only count">{given}</span>}
        </button>
      )}
      {children}
      {countFilters(query, filters) > 0 && !hasNoMatch && <a href={consoleState.path}>Clear filters</a>}
    </div>
  );
}

/** The type declarations have a type of its own for each type of input. */
const TYPES = {
  search: { type: "search" },
  text: { type: "text" },
  date: { type: "date" },
  time: { type: "datetime-local", step: 1 },
} as const;
const TYPING_MS = 200;

/** The URL follows the typing after a pause, and replaces itself, so that Back leaves the list. */
function TextFilter({ name, type = "text", onSecret, ...props }: Filter & { readonly name: string }) {
  const { placeholder, maxLength = 200 } = props;
  const given = consoleState.query.get(name) ?? "";
  const isTime = type === "time";
  const inUrl = isTime ? localInputOf(given, { hasSeconds: true }) : given;
  const [text, setText] = useState(inUrl);
  const input = useRef<HTMLInputElement>(null);
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  useEffect(() => {
    if (document.activeElement !== input.current || inUrl === "") setText(inUrl);
  }, [inUrl]);
  useEffect(() => () => clearTimeout(timer.current), []);
  return (
    <input
      ref={input}
      {...TYPES[type]}
      value={text}
      autocomplete="off"
      placeholder={placeholder}
      maxLength={maxLength}
      onInput={({ currentTarget }) => {
        const { value } = currentTarget;
        setText(value);
        clearTimeout(timer.current);
        const [secret] = SECRET_BEYOND_HINT.exec(value) ?? [];
        if (secret !== undefined) {
          setText((currentTarget.value = ""));
          return onSecret ? onSecret(secret) : announce("That is a secret: it is not searched for.");
        }
        const inUrl = isTime && value !== "" ? formatTime(Date.parse(value)) : value.trim();
        timer.current = setTimeout(() => navigate(urlWith({ [name]: inUrl }), { replace: true }), TYPING_MS);
      }}
    />
  );
}
