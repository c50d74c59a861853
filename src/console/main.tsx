import { type ComponentType, render } from "preact";
import { useEffect, useState } from "preact/hooks";
import { matchPage, type PageName } from "../operator/console/pages.ts";
import { isSignedIn } from "./admin-api.ts";
import { startClock } from "./clock.ts";
import { Layout } from "./components/layout.tsx";
import { Empty } from "./components/loading.tsx";
import { useObservable } from "./observable.ts";
import { Audit } from "./pages/audit.tsx";
import { KeyCreationPage, KeyEditPage } from "./pages/key-edit.tsx";
import { KeyPage } from "./pages/key.tsx";
import { Keys } from "./pages/keys.tsx";
import { OrderPage } from "./pages/order.tsx";
import { Orders } from "./pages/orders.tsx";
import { Overview } from "./pages/overview.tsx";
import type { PageProps } from "./pages/page.ts";
import { PetPage } from "./pages/pet.tsx";
import { Pets } from "./pages/pets.tsx";
import { Settings } from "./pages/settings.tsx";
import { SignIn } from "./pages/sign-in.tsx";
import { startPolling } from "./polling.ts";
import { startRouter, usePlace } from "./router.ts";
import { findSession, signIn, takeTokenFromUrl, useSession } from "./session.ts";
import { applyTheme, chosenTheme } from "./theme.ts";

const PAGES: Readonly<Record<PageName, ComponentType<PageProps>>> = {
  Overview,
  Keys,
  "Create a key": KeyCreationPage,
  "Edit a key": KeyEditPage,
  Key: KeyPage,
  Pets,
  Pet: PetPage,
  Orders,
  Order: OrderPage,
  Audit,
  Settings,
};

function App({ urlProblem }: { readonly urlProblem: string | undefined }) {
  const signedIn = useObservable(isSignedIn);
  if (signedIn === undefined) return <main class="sign-in muted">{urlProblem ?? "Loading …"}</main>;
  return signedIn ? <Console /> : <SignIn problem={urlProblem} />;
}

function Console() {
  const session = useSession();
  const { path } = usePlace();
  const match = matchPage(path);
  const environment = session.server?.environment;
  const title = match === undefined ? "Not found" : `${match.name} ${match.id}`.trim();
  useEffect(() => {
    document.title = `${title} · Petstore${environment === undefined ? "" : ` ${environment}`}`;
  }, [title, environment]);
  useFocusOnNewPage(path);
  const Page = match && PAGES[match.name];
  return (
    <Layout session={session}>
      {Page ? <Page key={path} session={session} id={match.id} /> : <NotFound path={path} />}
    </Layout>
  );
}

/** A screen reader reads the heading of the new page, and Tab continues from there. */
function useFocusOnNewPage(path: string): void {
  const [first] = useState(path);
  useEffect(() => {
    if (path !== first)
      (document.querySelector<HTMLElement>("h1") ?? document.querySelector("main"))?.focus();
  }, [path, first]);
}

function NotFound({ path }: { readonly path: string }) {
  return (
    <Empty title="There is no such page">
      <p>
        <code class="wrap">{path}</code> does not exist. <a href="/">Go to the overview</a>.
      </p>
    </Empty>
  );
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
