import type { ComponentChildren } from "preact";
import { MARK_PATH } from "../../pages/mark.ts";
import { unreadableText } from "../../operator/calls.ts";
import { PAGES } from "../../operator/console/pages.ts";
import { refresh } from "../polling.ts";
import { consoleState, clockSignal, serverSignal } from "../state.ts";
import { PaletteButton } from "./palette.tsx";

/** The pages that are no part of another one. */
const MAIN_PAGES = Object.entries(PAGES).filter(([, path]) => /^\/\w*$/.test(path));

/** The version of the server when this page was loaded. */
let loadedVersion: string | undefined;

/** The environment, or "demo", which the page names before anybody has signed in. */
export const ENVIRONMENT = document.documentElement.dataset["environment"];

export function Brand() {
  return (
    <>
      <svg viewBox="0 0 16 16" width="18" height="18" fill="currentColor" aria-hidden="true">
        <path d={MARK_PATH} />
      </svg>
      Petstore <span class="environment">{ENVIRONMENT}</span>
    </>
  );
}

export function Layout({ children }: { readonly children: ComponentChildren }) {
  const { path, notice, operator } = consoleState;
  const version = serverSignal.use()?.version;
  const unreadable = Object.values(consoleState.unreadable).reduce((sum, rows) => sum + rows, 0);
  loadedVersion ??= version;
  const isLost = consoleState.retryAt !== undefined;
  return (
    <div class={isLost ? "lost" : undefined}>
      <a class="skip" href="#main">
        Skip to the content
      </a>
      <header class="header" data-environment={ENVIRONMENT}>
        <a class="brand" href="/">
          <Brand />
        </a>
        <nav class="navigation" aria-label="Main">
          {MAIN_PAGES.map(([name, url]) => (
            <a key={url} href={url} aria-current={path.split("/")[1] === url.slice(1) ? "page" : undefined}>
              {name}
            </a>
          ))}
        </nav>
        <PaletteButton />
        {operator && (
          <a
            class="operator one-line"
            href="/settings"
            title={`Signed in as ${operator.name}: ${operator.role}`}
          >
            <bdi>{operator.name}</bdi>
          </a>
        )}
      </header>
      <LostBanner />
      <FailureBanner />
      {version !== loadedVersion && !isLost && (
        <div class="banner" role="status">
          The server has another version now.
          <button type="button" onClick={() => location.reload()}>
            Reload
          </button>
        </div>
      )}
      {unreadable > 0 && (
        <div class="banner" role="status">
          {unreadableText(unreadable)}.
        </div>
      )}
      <main id="main" tabIndex={-1}>
        {children}
      </main>
      <div class="toast" role="status">
        {notice}
      </div>
    </div>
  );
}

/** Says that a part of the page was not loaded, and why. */
function FailureBanner() {
  const { failure, retryAt } = consoleState;
  return (
    <div role="alert">
      {failure !== undefined && retryAt === undefined && (
        <div class="banner">
          Not all of this page could be loaded: {failure}
          <button type="button" onClick={() => void refresh()}>
            Try again
          </button>
        </div>
      )}
    </div>
  );
}

/** Says that the server does not respond. The last data stay on the page. */
function LostBanner() {
  const { retryAt } = consoleState;
  const seconds = Math.max(0, Math.ceil(((retryAt ?? 0) - clockSignal.use()) / 1_000));
  return (
    <div role="status">
      {retryAt !== undefined && (
        <div class="banner">
          <span>
            <span class="tone-limited" aria-hidden="true">
              ▲
            </span>{" "}
            The server does not respond. You see the last data.
          </span>
          {/* A screen reader reads the sentence once, not every second. */}
          <span class="muted" aria-hidden="true">
            {seconds === 0 ? "Trying now …" : `Next try in ${seconds} s`}
          </span>
          <button type="button" onClick={() => void refresh()}>
            Try now
          </button>
        </div>
      )}
    </div>
  );
}
