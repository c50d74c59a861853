import type { VNode } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { AdminOperationId, Server, Session } from "../operator/operations.ts";
import { keepUnchanged } from "./unchanged.ts";

interface State {
  /** Where the browser is: the URL holds the page, its filters, its order and its range. */
  path: string;
  query: URLSearchParams;
  /** Undefined until the server has responded. */
  isSignedIn?: boolean;
  /** The last one who has signed in: the pages stay while nobody has. */
  operator?: NonNullable<Session["operator"]>;
  /** The host of the provider with which people can sign in; undefined if there is none. */
  provider?: string | undefined;
  /** Why the code of the URL, or the response of the provider, did not work. */
  urlProblem?: string;
  /** When a server that does not respond is asked again; undefined while it responds. */
  retryAt?: number | undefined;
  /** Why a part of the page was not loaded; undefined while all of it is. */
  failure?: string | undefined;
  /** The code of a link that was opened while somebody is signed in, who has not decided yet. */
  linkCode?: string | undefined;
  /** How many rows of the last response of each operation this page cannot read. */
  unreadable: { readonly [Id in AdminOperationId]?: number };
  /** One short sentence about what was just done. Screen readers read it. */
  notice: string;
  /** The dialog that covers the page. */
  dialog?: (() => VNode) | undefined;
}

/** What the whole console depends on. It seldom changes, and every change renders all pages again. */
export const consoleState: State = {
  path: location.pathname,
  query: new URLSearchParams(location.search),
  unreadable: {},
  notice: "",
};

let render: () => void = () => undefined;

/** Renders the component again after every change. */
export function useConsoleState(): State {
  const [, setCount] = useState(0);
  render = () => setCount((count) => count + 1);
  return consoleState;
}

export function updateState(changes: Partial<State>): void {
  if (Object.entries(changes).every(([name, value]) => Reflect.get(consoleState, name) === value)) return;
  Object.assign(consoleState, changes);
  render();
}

/** A value that changes often. A change renders the components that use it, and no others. */
class Signal<T> {
  #value: T;
  readonly #followers = new Set<() => void>();

  constructor(value: T) {
    this.#value = value;
  }

  /** A hook: the value, also after a change. */
  use(): T {
    const [value, setValue] = useState(this.#value);
    useEffect(() => {
      const follow = () => setValue(this.#value);
      this.#followers.add(follow);
      // The value may have changed since the component was rendered.
      follow();
      return () => void this.#followers.delete(follow);
    }, []);
    return value;
  }

  set(value: T): void {
    this.#value = keepUnchanged(this.#value, value);
    for (const follow of this.#followers) follow();
  }
}

/** The time in milliseconds, set once a second: "2 s ago" counts on. */
export const clockSignal = new Signal(Date.now());
/** The server that responds; undefined until it is loaded. */
export const serverSignal = new Signal<Server | undefined>(undefined);

export function startClock(): void {
  setInterval(() => clockSignal.set(Date.now()), 1_000);
}

const NOTICE_MS = 5_000;
let noticeTimer: ReturnType<typeof setTimeout> | undefined;

export function announce(notice: string): void {
  updateState({ notice });
  clearTimeout(noticeTimer);
  noticeTimer = setTimeout(() => updateState({ notice: "" }), NOTICE_MS);
}
