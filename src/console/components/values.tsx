/* Single values: times, states, names and numbers. */

import { type ComponentChildren, Fragment } from "preact";
import type { OrderStatus, PetStatus } from "../../domain/pets-and-orders.ts";
import { classesOf } from "../../pages/classes.ts";
import { localTime, relative, utcTime } from "../../pages/format.ts";
import { type Meaning, SYMBOLS } from "../../pages/meanings.ts";
import { clockSignal } from "../state.ts";

interface TimeProps {
  /** RFC 3339. */
  readonly at: string | null;
  /** What to write if there is no time. */
  readonly none?: string;
  readonly text?: (ms: number) => string;
}

/** "2 s ago", and counting. The local time and the instant in UTC are on hover. */
export function TimeAgo({ at, none }: TimeProps) {
  const nowMs = clockSignal.use();
  if (at === null) return none === undefined ? NO_VALUE : <span class="muted">{none}</span>;
  const ms = Date.parse(at);
  return (
    <time dateTime={at} title={`${localTime(ms)} local\n${utcTime(ms)}`}>
      {relative(ms, nowMs)}
    </time>
  );
}

/** The local time, with the instant in UTC on hover. */
export function LocalTime({ at, none = "–", text = localTime }: TimeProps) {
  if (at === null) return <span class="muted">{none}</span>;
  const ms = Date.parse(at);
  return (
    <time dateTime={at} title={utcTime(ms)}>
      {text(ms)}
    </time>
  );
}

/** The local time and how far away it is. */
export function LocalTimeAndAgo({ at }: { readonly at: string }) {
  return (
    <>
      <LocalTime at={at} />{" "}
      <span class="muted small">
        (<TimeAgo at={at} />)
      </span>
    </>
  );
}

/** There is no value. As a cell of a table it takes no room on a narrow screen. */
export const NO_VALUE = <span class="muted">–</span>;

interface BadgeProps {
  readonly meaning: Meaning;
  readonly text: string;
  readonly symbol?: string;
}

export function Badge({ meaning, text, symbol = SYMBOLS[meaning] }: BadgeProps) {
  return (
    <span class={`badge ${meaning === "ok" ? "" : `tone-${meaning}`}`}>
      <span class={`symbol tone-${meaning}`} aria-hidden="true">
        {symbol}
      </span>
      {text}
    </span>
  );
}

/** A status that is not the first one has no colour, but a shape of its own. */
const STATUS_SYMBOLS: Readonly<Partial<Record<PetStatus | OrderStatus, string>>> = {
  pending: "◐",
  sold: "✓",
  completed: "✓",
  cancelled: "✕",
};

export function StatusBadge({ status }: { readonly status: PetStatus | OrderStatus }) {
  const symbol = STATUS_SYMBOLS[status];
  return <Badge meaning={symbol ? "muted" : "ok"} text={status} {...(symbol && { symbol })} />;
}

/** A name that leads to its own page and makes the whole row of a table a link. */
export function NameLink({ url, name }: { readonly url: string; readonly name: string }) {
  return (
    <a class="row-link" href={url}>
      <bdi class="name" title={name}>
        {name}
      </bdi>
    </a>
  );
}

/** A name in a row that leads to the page of another thing than the row does. */
export function OtherLink({ url, name }: { readonly url: string; readonly name: string }) {
  return (
    <a class="above one-line" href={url} title={name}>
      <bdi>{name}</bdi>
    </a>
  );
}

/** A value, and what is to say about it. */
export type Figure = readonly [value: ComponentChildren, note?: ComponentChildren];

/** Large numbers. */
export function Stats({ figures }: { readonly figures: Readonly<Record<string, Figure>> }) {
  const entries = Object.entries(figures);
  const hasNotes = entries.some(([, [, note]]) => note);
  const shape = { stats: true, many: entries.length > 3, "without-notes": !hasNotes };
  return (
    <dl class={classesOf(shape)}>
      {entries.map(([name, [value, note]]) => (
        <div key={name} class="stat">
          <dt>{name}</dt>
          <dd>{value}</dd>
          {note && <dd class="note muted">{note}</dd>}
        </div>
      ))}
    </dl>
  );
}

interface FactsProps {
  readonly facts: Readonly<Record<string, ComponentChildren>>;
  /** Whether they are a card of their own. */
  readonly isCard?: boolean;
}

/** Names and values of one thing. */
export function Facts({ facts, isCard = false }: FactsProps) {
  return (
    <dl class={isCard ? "facts card" : "facts"}>
      {Object.entries(facts).map(([name, value]) => (
        <Fragment key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </Fragment>
      ))}
    </dl>
  );
}
