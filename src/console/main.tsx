import { type ComponentType, render } from "preact";
import { useEffect, useState } from "preact/hooks";
import { messageOf } from "../runtime/message-of.ts";
import { matchPage, type PageName } from "../operator/console/pages.ts";
import { call } from "./admin-api.ts";
import { ENVIRONMENT, Layout } from "./components/layout.tsx";
import { Empty, PageHead, type PageProps, Skeleton } from "./components/page.tsx";
import { startPaletteKey } from "./components/palette.tsx";
import { AuditTrailPage } from "./pages/audit.tsx";
import { KeyCreationPage, KeyEditPage } from "./pages/key-edit.tsx";
import { KeyDetailsPage } from "./pages/key.tsx";
import { KeyListPage } from "./pages/keys.tsx";
import { OperatorListPage } from "./pages/operators.tsx";
import { OrderDetailsPage, OrderListPage } from "./pages/orders.tsx";
import { OverviewPage } from "./pages/overview.tsx";
import { PetCreationPage, PetDetailsPage, PetListPage } from "./pages/pets.tsx";
import { PlanListPage } from "./pages/plans.tsx";
import { RequestListPage } from "./pages/requests.tsx";
import { SettingsPage } from "./pages/settings.tsx";
import { LinkPage, SignInPage } from "./pages/sign-in.tsx";
import { startPolling, usePolling } from "./polling.ts";
import { startPrintableText } from "./printable-text.ts";
import { navigate, startRouter } from "./router.ts";
import { startSearchShortcut } from "./search-shortcut.ts";
import {
  findSession,
  loadSession,
  mayOpen,
  openLink,
  returnFromProvider,
  setSession,
  takeReturnUrl,
} from "./session.ts";
import { consoleState, serverSignal, startClock, updateState, useConsoleState } from "./state.ts";
import { applyTheme, chosenTheme } from "../pages/theme.ts";

const PAGES: Readonly<Record<PageName, ComponentType<PageProps>>> = {
  Overview: OverviewPage,
  Keys: KeyListPage,
  "Create a key": KeyCreationPage,
  "Edit a key": KeyEditPage,
  Key: KeyDetailsPage,
  Plans: PlanListPage,
  Pets: PetListPage,
  "Add a pet": PetCreationPage,
  Pet: PetDetailsPage,
  Orders: OrderListPage,
  Order: OrderDetailsPage,
  Requests: RequestListPage,
  Audit: AuditTrailPage,
  Operators: OperatorListPage,
  Settings: SettingsPage,
};

function App() {
  const { isSignedIn, operator, urlProblem, linkCode } = useConsoleState();
  if (linkCode !== undefined) return <LinkPage code={linkCode} />;
  if (isSignedIn === undefined) return <main class="sign-in muted">{urlProblem ?? <Skeleton />}</main>;
  return (
    <>
      {/* When a session ends, the pages wait with what was typed into them. */}
      {operator && (
        <div hidden={!isSignedIn}>
          <Console />
        </div>
      )}
      {!isSignedIn && <SignInPage />}
    </>
  );
}

function Console() {
  usePolling("server", () => call("getServer"), { onData: (data) => serverSignal.set(data) });
  // The role may change, and with it what the pages show.
  usePolling("session", loadSession, { onData: setSession });
  const { path, dialog } = consoleState;
  useDocumentTitle(path);
  useFocusOnNewPage(path);
  return (
    <Layout>
      <PageOfPath key={path} />
      {dialog?.()}
    </Layout>
  );
}

function useDocumentTitle(path: string): void {
  const match = matchPage(path);
  const title = match === undefined ? "Not found" : `${match.name} ${match.id}`.trim();
  useEffect(() => {
    document.title = `${ENVIRONMENT === "staging" ? "STAGING: " : ""}${title} · Petstore ${ENVIRONMENT}`;
  }, [title]);
}

function PageOfPath() {
  const { path } = consoleState;
  const match = matchPage(path);
  if (match === undefined) {
    return (
      <section>
        <h1 tabIndex={-1}>Not found</h1>
        <Empty
          title="There is no such page"
          action={
            <a class="button" href="/">
              Go to the overview
            </a>
          }
        >
          <code class="wrap">{path}</code> does not exist.
        </Empty>
      </section>
    );
  }
  const Page = PAGES[match.name];
  if (mayOpen(match.name)) return <Page id={match.id} />;
  return (
    <section>
      <PageHead title={match.name} />
      <Empty title="Your role does not allow it">
        An operator with the role admin can do it. <a href="/operators">See who that is</a>.
      </Empty>
    </section>
  );
}

/** A screen reader reads the heading of the new page, and Tab continues from there. */
function useFocusOnNewPage(path: string): void {
  const [first] = useState(path);
  useEffect(() => {
    // A form has focused its first field.
    if (path !== first && !document.activeElement?.matches("input, textarea"))
      (document.querySelector<HTMLElement>("h1") ?? document.querySelector("main"))?.focus({
        preventScroll: true,
      });
  }, [path, first]);
}

/**
 * The URL that `petstore admin-url` prints has a code, and the one by which the provider sends the browser back has its
 * response. Either is taken out of the address bar before anything else happens; so is a token, which the URLs of
 * earlier releases have. Returns how to sign in with what it was.
 */
function takeSignInFromUrl(): (() => Promise<void>) | undefined {
  const url = new URL(location.href);
  const { searchParams } = url;
  // A list has a filter of this name.
  if (url.pathname === "/" && searchParams.has("state")) {
    navigate(takeReturnUrl(), { replace: true });
    return () => returnFromProvider(searchParams);
  }
  const code = searchParams.get("code");
  for (const name of ["code", "token"]) searchParams.delete(name);
  navigate(url.pathname + url.search, { replace: true });
  return code === null ? undefined : () => openLink(code);
}

/** Signs in with what the URL has, or finds the session of this browser. Tries again while the server is gone. */
async function start(): Promise<void> {
  const signInFromUrl = takeSignInFromUrl();
  try {
    await (signInFromUrl ?? findSession)();
  } catch (error) {
    updateState({ urlProblem: messageOf(error) });
    await findSession().catch(() => updateState({ isSignedIn: false }));
  }
}

applyTheme(chosenTheme());
startPrintableText();
startRouter();
startSearchShortcut();
startPaletteKey();
startClock();
startPolling();
const root = document.querySelector("#console");
if (root) render(<App />, root);
void start();
