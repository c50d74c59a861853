import { call, isSignedIn, type Server } from "./admin-api.ts";
import { usePolled } from "./polling.ts";
import { navigate } from "./router.ts";

/** What every page knows of the server. */
export interface Session {
  /** Undefined until it is loaded. */
  readonly server: Server | undefined;
  /** Whether the server has another version than when this page was loaded. */
  readonly isOutdated: boolean;
}

let loadedVersion: string | undefined;

export function useSession(): Session {
  const { data } = usePolled("server", () => call("getServer"));
  loadedVersion ??= data?.version;
  return { server: data, isOutdated: data !== undefined && data.version !== loadedVersion };
}

/** The URL that the server prints has the token. It is taken out of the address bar before anything else happens. */
export function takeTokenFromUrl(): string | undefined {
  const url = new URL(location.href);
  const token = url.searchParams.get("token");
  if (token === null) return undefined;
  url.searchParams.delete("token");
  navigate(url.pathname + url.search, { replace: true });
  return token;
}

export async function signIn(token: string): Promise<void> {
  const { signedIn } = await call("createSession", { body: { token: token.trim() } });
  isSignedIn.set(signedIn);
}

export async function signOut(): Promise<void> {
  await call("deleteSession");
  isSignedIn.set(false);
}

export async function findSession(): Promise<void> {
  const { signedIn } = await call("getSession");
  isSignedIn.set(signedIn);
}
