/* What every page gets, and what pages consist of. */

import type { ComponentChildren } from "preact";
import { useId, useLayoutEffect } from "preact/hooks";
import { BASE_PATH, DOCS_PATH } from "../../domain/paths.ts";
import { RejectedRequest } from "../admin-api.ts";
import { capitalized } from "../../pages/format.ts";
import { isTransient, type Polled } from "../polling.ts";
import { restorePlace } from "../router.ts";
import { consoleState, serverSignal } from "../state.ts";

export interface PageProps {
  /** The identifier in the path; empty if the path has none. */
  readonly id: string;
}

interface PageHeadProps {
  readonly title: ComponentChildren;
  /** What is shown next to the title. */
  readonly badge?: ComponentChildren;
  /** What can be done. */
  readonly children?: ComponentChildren;
}

export function PageHead({ title, badge, children }: PageHeadProps) {
  const [list = "", ...rest] = consoleState.path.slice(1).split("/");
  return (
    <div class={rest.length === 0 ? "page-head" : "page-head of-one"}>
      {rest.length > 0 && <Crumbs list={list} rest={rest} />}
      <h1 tabIndex={-1}>{title}</h1>
      {badge}
      {children && <div class="actions">{children}</div>}
    </div>
  );
}

interface CrumbsProps {
  readonly list: string;
  /** The identifier, or `new`, and what is done with it. */
  readonly rest: readonly string[];
}

/** The way back to the list, and to the thing that the page is about. */
function Crumbs({ list, rest: [id = "", ...more] }: CrumbsProps) {
  const thing = `${list.slice(0, -1)} ${id}`;
  return (
    <span class="crumb">
      <a href={`/${list}`}>{capitalized(list)}</a>
      {id !== "new" && <> / {more.length === 0 ? thing : <a href={`/${list}/${id}`}>{thing}</a>}</>}
    </span>
  );
}

/** A title that a client has chosen. */
export function NameTitle({ name }: { readonly name: string }) {
  return (
    <bdi class="clamp" title={name}>
      {name}
    </bdi>
  );
}

interface SectionProps {
  readonly title: ComponentChildren;
  /** What is shown next to the title. */
  readonly control?: ComponentChildren;
  readonly isCard?: boolean;
  readonly children: ComponentChildren;
}

export function PageSection({ title, control, isCard = false, children }: SectionProps) {
  const id = useId();
  return (
    <section class={isCard ? "card" : undefined} aria-labelledby={id}>
      <div class="page-head">
        <h2 id={id}>{title}</h2>
        {control}
      </div>
      {children}
    </section>
  );
}

interface FormPageProps {
  readonly title: ComponentChildren;
  /** What happens when the form is submitted. */
  readonly about: string;
  readonly children: ComponentChildren;
}

/** A form, and what it does. */
export function FormPage({ title, about, children }: FormPageProps) {
  return (
    <section>
      <PageHead title={title} />
      <div class="with-aside">
        <div>{children}</div>
        <aside>
          <PageSection title="What happens">
            <p class="muted">{about}</p>
          </PageSection>
        </aside>
      </div>
    </section>
  );
}

interface LoadedProps<T> {
  readonly of: Polled<T>;
  readonly children: (data: T) => ComponentChildren;
}

/** Shows the data, and above them why the last request was rejected. The banner shows a transient error. */
export function Loaded<T>({ of: { data, error, isStale }, children }: LoadedProps<T>) {
  useLayoutEffect(restorePlace, [data, isStale]);
  const rejection = error && !isTransient(error) && error.message;
  if (data === undefined && !rejection)
    return error || consoleState.retryAt ? <p class="muted">Nothing is loaded yet.</p> : <Skeleton />;
  return (
    <>
      {rejection && !isStale && (
        <p class="problem" role="alert">
          {rejection}
        </p>
      )}
      {data !== undefined && <div class={isStale ? "stale" : undefined}>{children(data)}</div>}
    </>
  );
}

/** The shape of what is being loaded; screen readers read the word. */
export function Skeleton() {
  return (
    <div class="skeleton">
      <span class="visually-hidden">Loading …</span>
    </div>
  );
}

interface DetailsProps<T> extends LoadedProps<T> {
  readonly kind: "key" | "pet" | "order";
  readonly id: string;
}

/** The page of one thing. Without it: a heading, why, and the way back. */
export function Details<T>({ kind, id, of, children }: DetailsProps<T>) {
  const isMissing = of.error instanceof RejectedRequest && of.error.status === 404;
  if (of.data !== undefined && !isMissing) return <Loaded of={of}>{children}</Loaded>;
  const name = `${kind} ${id}`;
  return (
    <section>
      <PageHead title={isMissing ? `There is no ${name}` : capitalized(name)} />
      {isMissing ? (
        <Empty
          title={`No ${kind} has this identifier`}
          action={
            <a class="button" href={`/${kind}s`}>
              See all {kind}s
            </a>
          }
        >
          {kind === "pet" ? (
            <>
              If it was deleted, <a href={`/audit?target=pet:${id}`}>the audit trail</a> says so.
            </>
          ) : (
            `${capitalized(kind)}s are never deleted.`
          )}
        </Empty>
      ) : (
        <Loaded of={of}>{children}</Loaded>
      )}
    </section>
  );
}

interface DocsButtonProps {
  /** The path of a page within the docs for clients; empty for the quickstart. */
  readonly page: string;
  readonly children: ComponentChildren;
}

export function DocsButton({ page, children }: DocsButtonProps) {
  const { publicUrl = "" } = serverSignal.use() ?? {};
  return (
    <a class="button" href={publicUrl.replace(BASE_PATH, DOCS_PATH + page)}>
      {children}
    </a>
  );
}

interface EmptyProps {
  readonly title: string;
  /** What to do next: a button or a link. */
  readonly action?: ComponentChildren;
  readonly children?: ComponentChildren;
}

/** There is nothing: what that means, and what to do next. */
export function Empty({ title, action, children }: EmptyProps) {
  return (
    <div class="empty">
      <strong>{title}</strong>
      <p>{children}</p>
      {action}
    </div>
  );
}
