import type { ComponentChildren } from "preact";
import { useNow } from "../clock.ts";
import { notice } from "../notices.ts";
import { useObservable } from "../observable.ts";
import { connection, refresh } from "../polling.ts";
import { navigate, urlWith, usePlace } from "../router.ts";
import type { Session } from "../session.ts";

const PAGES = [
  ["/", "Overview"],
  ["/keys", "Keys"],
  ["/pets", "Pets"],
  ["/orders", "Orders"],
  ["/audit", "Audit"],
  ["/settings", "Settings"],
] as const;

export const RANGES = { "15m": "15 min", "1h": "1 h", "6h": "6 h", "24h": "24 h" } as const;
export const DEFAULT_RANGE = "1h";

interface LayoutProps {
  readonly session: Session;
  readonly children: ComponentChildren;
}

export function Layout({ session: { server, isOutdated }, children }: LayoutProps) {
  const { path } = usePlace();
  const { lost } = useObservable(connection);
  return (
    <div class={lost === undefined ? undefined : "lost"}>
      <a class="skip" href="#main">
        Skip to the content
      </a>
      <header class="header">
        <a class="brand" href="/">
          Petstore{" "}
          <span class="environment" data-environment={server?.environment}>
            · {server?.environment ?? "…"}
          </span>
        </a>
        <nav class="navigation" aria-label="Main">
          {PAGES.map(([url, name]) => (
            <a key={url} href={url} aria-current={isWithin(path, url) ? "page" : undefined}>
              {name}
            </a>
          ))}
        </nav>
        <div class="header-end">{path === "/" && <RangeSelect />}</div>
      </header>
      <LostBanner />
      {isOutdated && lost === undefined && (
        <div class="banner" role="status">
          The server has another version now.
          <button type="button" onClick={() => location.reload()}>
            Reload
          </button>
        </div>
      )}
      <main id="main" tabIndex={-1}>
        {children}
      </main>
      <Toast />
    </div>
  );
}

function isWithin(path: string, url: string): boolean {
  return url === "/" ? path === "/" : path === url || path.startsWith(`${url}/`);
}

function RangeSelect() {
  const { query } = usePlace();
  return (
    <select
      aria-label="Time range"
      value={query.get("range") ?? DEFAULT_RANGE}
      onChange={({ currentTarget: { value } }) =>
        navigate(urlWith({ range: value === DEFAULT_RANGE ? "" : value }))
      }
    >
      {Object.entries(RANGES).map(([value, text]) => (
        <option key={value} value={value}>
          last {text}
        </option>
      ))}
    </select>
  );
}

/** One quiet line. The last data stay, dimmed. */
function LostBanner() {
  const { lost } = useObservable(connection);
  const now = useNow();
  const seconds = lost === undefined ? 0 : Math.max(0, Math.ceil((lost.retryAt - now) / 1_000));
  return (
    <div role="status">
      {lost !== undefined && (
        <div class="banner">
          <span>
            <span class="symbol" aria-hidden="true">
              ▲
            </span>{" "}
            The server does not respond. You see the last data.
          </span>
          {/* Screen readers hear the sentence once, not every second. */}
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

function Toast() {
  const text = useObservable(notice);
  return (
    <div class="toast" role="status">
      {text}
    </div>
  );
}
