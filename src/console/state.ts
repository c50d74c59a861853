import type { VNode } from "preact";
import { useState } from "preact/hooks";
import type { AdminOperationId, Server, Session } from "../operator/operations.ts";

interface State {
  /** Where the browser is: the URL holds the page, its filters, its order and its range. */
  path: string;
  query: URLSearchParams;
  /** In milliseconds, once a second: "2 s ago" counts on. */
  now: number;
  /** Undefined until the server has said so. */
  isSignedIn?: boolean;
  /** The last one who has signed in: the pages stay while nobody has. */
  operator?: NonNullable<Session["operator"]>;
  /** Why the code of the URL did not work. */
  urlProblem?: string;
  /** Undefined until it is loaded. */
  server?: Server;
  /** When a server that does not respond is asked again; undefined while it responds. */
  retryAt?: number | undefined;
  /** How many rows of the last response of each operation this page cannot read. */
  unreadable: { readonly [Id in AdminOperationId]?: number };
  /** One short sentence about what was just done. Screen readers read it. */
  notice: string;
  /** Over the page. */
  dialog?: (() => VNode) | undefined;
}

/** What the whole console shows. Every change renders all of it again. */
export const current: State = {
  path: location.pathname,
  query: new URLSearchParams(location.search),
  now: Date.now(),
  unreadable: {},
  notice: "",
};

let render: () => void = () => undefined;

/** Renders the component again after every change. */
export function useCurrent(): State {
  const [, setCount] = useState(0);
  render = () => setCount((count) => count + 1);
  return current;
}

export function update(changes: Partial<State>): void {
  Object.assign(current, changes);
  render();
}

export function startClock(): void {
  setInterval(() => update({ now: Date.now() }), 1_000);
}

const NOTICE_MS = 5_000;
let noticeTimer: ReturnType<typeof setTimeout> | undefined;

export function announce(notice: string): void {
  update({ notice });
  clearTimeout(noticeTimer);
  noticeTimer = setTimeout(() => update({ notice: "" }), NOTICE_MS);
}
