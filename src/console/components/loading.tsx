import type { ComponentChildren } from "preact";
import { ApiError } from "../admin-api.ts";
import { connection, type Polled } from "../polling.ts";
import { useObservable } from "../observable.ts";

interface LoadedProps<T> {
  readonly of: Polled<T>;
  readonly children: (data: T) => ComponentChildren;
}

/** What was loaded; what went wrong, above the last data if there are any. */
export function Loaded<T>({ of: { data, error, isStale }, children }: LoadedProps<T>) {
  const { lost } = useObservable(connection);
  if (data === undefined && error === undefined) {
    return <p class="muted">{lost === undefined ? "Loading …" : "Nothing is loaded yet."}</p>;
  }
  return (
    <>
      {error !== undefined && !isStale && (
        <p class="problem" role="alert">
          {error instanceof ApiError || error.message !== "" ? error.message : "Loading failed."}
        </p>
      )}
      {data !== undefined && <div class={isStale ? "stale" : undefined}>{children(data)}</div>}
    </>
  );
}

interface EmptyProps {
  readonly title: string;
  readonly children: ComponentChildren;
}

/** There is nothing: what that means, and what to do next. */
export function Empty({ title, children }: EmptyProps) {
  return (
    <div class="empty">
      <strong>{title}</strong>
      {children}
    </div>
  );
}
