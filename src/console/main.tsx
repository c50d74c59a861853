import { type ComponentType, render } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { matchPage, type PageName } from "../operator/console/pages.ts";
import { call, findSession, isSignedIn, signIn } from "./admin-api.ts";
import { Layout } from "./components/layout.tsx";
import { Empty, type PageProps } from "./components/page.tsx";
import { startClock, useObservable } from "./observable.ts";
import { AuditTrailPage } from "./pages/audit.tsx";
import { KeyCreationPage, KeyEditPage } from "./pages/key-edit.tsx";
import { KeyDetailsPage } from "./pages/key.tsx";
import { KeyListPage } from "./pages/keys.tsx";
import { OrderDetailsPage, OrderListPage } from "./pages/orders.tsx";
import { OverviewPage } from "./pages/overview.tsx";
import { PetCreationPage, PetDetailsPage, PetListPage } from "./pages/pets.tsx";
import { SettingsPage } from "./pages/settings.tsx";
import { SignInPage } from "./pages/sign-in.tsx";
import { startPolling, usePolled } from "./polling.ts";
import { navigate, startRouter, useLocation } from "./router.ts";
import { applyTheme, chosenTheme } from "./theme.ts";

const PAGES: Readonly<Record<PageName, ComponentType<PageProps>>> = {
  Overview: OverviewPage,
  Keys: KeyListPage,
  "Create a key": KeyCreationPage,
  "Edit a key": KeyEditPage,
  Key: KeyDetailsPage,
  Pets: PetListPage,
  "Add a pet": PetCreationPage,
  Pet: PetDetailsPage,
  Orders: OrderListPage,
  Order: OrderDetailsPage,
  Audit: AuditTrailPage,
  Settings: SettingsPage,
};

function App({ urlProblem }: { readonly urlProblem: string | undefined }) {
  const signedIn = useObservable(isSignedIn);
  // When a session ends, the pages wait with what was typed into them.
  const wasSignedIn = useRef(false);
  if (signedIn === undefined) return <main class="sign-in muted">{urlProblem ?? "Loading …"}</main>;
  wasSignedIn.current ||= signedIn;
  return (
    <>
      {wasSignedIn.current && (
        <div hidden={!signedIn}>
          <Console />
        </div>
      )}
      {!signedIn && <SignInPage problem={urlProblem} />}
    </>
  );
}

function Console() {
  const { server, isOutdated } = useServer();
  const { path } = useLocation();
  const match = matchPage(path);
  const environment = server?.environment;
  const title = match === undefined ? "Not found" : `${match.name} ${match.id}`.trim();
  useEffect(() => {
    const name = environment === undefined ? "" : ` ${environment}`;
    document.title = `${environment === "staging" ? "STAGING: " : ""}${title} · Petstore${name}`;
  }, [title, environment]);
  useFocusOnNewPage(path);
  const Page = match && PAGES[match.name];
  return (
    <Layout server={server} isOutdated={isOutdated}>
      {Page ? (
        <Page key={path} server={server} id={match.id} />
      ) : (
        <Empty title="There is no such page">
          <code class="wrap">{path}</code> does not exist. <a href="/">Go to the overview</a>.
        </Empty>
      )}
    </Layout>
  );
}

let loadedVersion: string | undefined;

/** The server, undefined until it is loaded, and whether it has another version than when this page was loaded. */
function useServer() {
  const { data: server } = usePolled("server", () => call("getServer"));
  loadedVersion ??= server?.version;
  return { server, isOutdated: server !== undefined && server.version !== loadedVersion };
}

/** A screen reader reads the heading of the new page, and Tab continues from there. */
function useFocusOnNewPage(path: string): void {
  const [first] = useState(path);
  useEffect(() => {
    // A form has focused its first field.
    if (path !== first && !document.activeElement?.matches("input, textarea"))
      (document.querySelector<HTMLElement>("h1") ?? document.querySelector("main"))?.focus();
  }, [path, first]);
}

/** The URL that the server prints has the token. It is taken out of the address bar before anything else happens. */
function takeTokenFromUrl(): string | undefined {
  const url = new URL(location.href);
  const token = url.searchParams.get("token");
  if (token === null) return undefined;
  url.searchParams.delete("token");
  navigate(url.pathname + url.search, { replace: true });
  return token;
}

/** Signs in with the token of the URL, or finds the session of this browser. Tries again while the server is gone. */
async function start(root: Element): Promise<void> {
  const token = takeTokenFromUrl();
  const show = (urlProblem?: string) => render(<App urlProblem={urlProblem} />, root);
  show();
  try {
    if (token === undefined) await findSession();
    else await signIn(token);
  } catch (error) {
    const problem = error instanceof Error ? error.message : String(error);
    show(problem);
    await findSession().catch(() => isSignedIn.set(false));
  }
}

applyTheme(chosenTheme());
startRouter();
startClock();
startPolling();
const root = document.querySelector("#console");
if (root) void start(root);
