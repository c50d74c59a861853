/* One of a few values of a parameter in the URL. */

import { grouped } from "../../text/formatting.ts";
import { navigate, urlWith } from "../router.ts";
import { consoleState } from "../state.ts";

export type UrlOption = string | readonly [value: string, text: string, count?: number | undefined];

interface UrlSelectProps {
  readonly name: string;
  readonly options: readonly UrlOption[];
  /** The value that the URL leaves out. */
  readonly initial: string;
  readonly "aria-label"?: string;
}

export const pairsOf = (options: readonly UrlOption[]) =>
  options.map((option) => (typeof option === "string" ? ([option, option] as const) : option));

/** The value in the URL, if it is one of the options. */
function chosenOf({ name, options, initial }: UrlSelectProps): string {
  const given = consoleState.query.get(name);
  return pairsOf(options).find(([value]) => value === given)?.[0] ?? initial;
}

/** One of a few values of a parameter in the URL. */
export function UrlSelect({ name, options, initial, ...attributes }: UrlSelectProps) {
  const choose = (value: string) => navigate(urlWith({ [name]: value === initial ? "" : value }));
  return (
    <select
      {...attributes}
      value={chosenOf({ name, options, initial })}
      onChange={(event) => choose(event.currentTarget.value)}
    >
      {pairsOf(options).map(([value, text]) => (
        <option key={value} value={value}>
          {text}
        </option>
      ))}
    </select>
  );
}

interface UrlSegmentsProps extends UrlSelectProps {
  readonly "aria-label": string;
}

/** One of a few values of a parameter in the URL, all of them in view: each is a link. */
export function UrlSegments({ name, options, initial, ...attributes }: UrlSegmentsProps) {
  const given = chosenOf({ name, options, initial });
  return (
    <nav class="segments" {...attributes}>
      {pairsOf(options).map(([value, text, count]) => (
        <a
          key={value}
          href={urlWith({ [name]: value === initial ? "" : value })}
          aria-current={value === given ? "true" : undefined}
        >
          {text} {count !== undefined && <span class="count">{grouped(count)}</span>}
        </a>
      ))}
    </nav>
  );
}
