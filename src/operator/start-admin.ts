import { hostname } from "node:os";
import { Rejection } from "../api/errors.ts";
import { type Config, hasAllQuotas, originOf } from "../config/config.ts";
import { isLoopback } from "../config/network.ts";
import { SECURITY_HEADER_LINES } from "../api/responses.ts";
import { type ActivityCollector, limitSettersIn, type ServerState } from "../domain/servers.ts";
import type { HttpServer, HttpServerOptions, TlsCertificate } from "../http1/index.ts";
import { createAdminApp } from "./admin-app.ts";
import { listenForOperators } from "./admin-listener.ts";
import type { ServerServices } from "./handlers/services.ts";
import { type OperatorRate, OperatorRates } from "./operator-rates.ts";
import { askForRequests, askServer, machineAddress, peerTlsOf, reasonNotToAsk } from "./server-requests.ts";
import type { ServerSecret } from "./server-secret.ts";
import type { FollowTokens } from "./setting-tokens.ts";
import { AdminAuthentication } from "./sign-in.ts";
import { createSignInUrl } from "./token.ts";

export interface AdminListener {
  /** The URL of the listener, such as http://127.0.0.1:8090. */
  readonly url: string;
  /**
   * Creates a URL with a new code, which signs in whoever opens it first. It has no code if no operator is an admin.
   */
  createSignInUrl(): Promise<string>;
  readonly tokenFile: AdminCredentials["tokenFile"];
  readonly server: HttpServer;
  /** Replaces the certificate of the listener. */
  setTlsCertificate(certificate: TlsCertificate): void;
  close(): Promise<void>;
}

type FromConfig = "environment" | "hasAllQuotas" | "listLimitSetters";
type FromListener =
  | "url"
  | "authentication"
  | "operatorRates"
  | "proofOf"
  | "signResponseTo"
  | "askForRequests"
  | "askForSeries"
  | "applyOperatorChanges";

/** The credentials in the database and the data directory. */
export interface AdminCredentials {
  readonly followTokens: FollowTokens;
  /** The file of a token; undefined if the token is in a variable, or only operators have theirs. */
  readonly tokenFile: string | undefined;
  readonly serverSecret: ServerSecret;
}

interface StartAdminOptions extends Omit<ServerServices, FromConfig | FromListener> {
  /** Reports to the other servers the URL by which their machines reach this listener. */
  readonly activity: Pick<ActivityCollector, "add">;
  /** Reports the activity now. */
  readonly announce: () => void;
  readonly config: Config;
  readonly credentials: AdminCredentials;
  /** The rate of each operator; higher in tests. */
  readonly operatorRate: OperatorRate | undefined;
  readonly tls: TlsCertificate | undefined;
  /** Groups the connections that count together. */
  readonly peerOf: NonNullable<HttpServerOptions["peerOf"]>;
}

/** Serves operators on a listener of their own. Throws AdminListenError if it cannot listen on the address. */
export function startAdmin(options: StartAdminOptions): AdminListener {
  const { config, admin, operators, clock, log, settings, announce } = options;
  // The certificate is for the name that clients use, and not for the loopback address.
  const tls = isLoopback(admin.host) ? undefined : options.tls;
  const { followTokens, tokenFile, serverSecret } = options.credentials;
  const server = listenForOperators(admin, {
    createHandler: ({ port }) => siteOf({ ...options, port, isTls: tls !== undefined }),
    headerLines: SECURITY_HEADER_LINES,
    tls,
    peerOf: options.peerOf,
    onError: (error) => log.event("connection.failed", { error }),
  });
  const { handler: site } = server;
  const { url } = site;
  const opened = new AsyncDisposableStack();
  opened.defer(() => server.close(0));
  opened.defer(followTokens());
  opened.defer(options.activity.add(() => site.signedUrl()));
  opened.defer(serverSecret.follow(settings, announce));
  opened.defer(config.directory.saveUrl("adminUrl", url));
  announce();
  return {
    url,
    async createSignInUrl() {
      const signInUrl = await createSignInUrl({ url, operators, clock, madeBy: `serve (${hostname()})` });
      return signInUrl instanceof Rejection ? url : signInUrl;
    },
    tokenFile,
    server,
    setTlsCertificate(certificate) {
      server.setTlsCertificate(certificate);
      site.setTlsCertificate(certificate);
    },
    close: () => opened.disposeAsync(),
  };
}

interface SiteOptions extends StartAdminOptions {
  readonly port: number;
  readonly isTls: boolean;
}

/** The handler of the listener, with the URLs by which operators and other servers reach it. */
function siteOf(options: SiteOptions) {
  const { config, admin, operators, audit, servers, publicUrl, clock, log, port, isTls } = options;
  const { serverSecret } = options.credentials;
  const url = originOf({ host: admin.host, port, isTls });
  const machineUrl = originOf({ host: machineAddress(admin.host), port, isTls });
  const ownUrls = [url, machineUrl].map((each) => new URL(each));
  // Cookies do not distinguish ports, so each listener of a machine has a cookie of its own.
  const cookieName = `petstore-admin-${port}`;
  const authentication = new AdminAuthentication({ operators, audit, cookieName, clock, log });
  const { environment } = config;
  let peerTls = peerTlsOf(publicUrl, options.tls?.cert);
  const problemOf = (other: ServerState) =>
    reasonNotToAsk(other, { secret: serverSecret, hasTls: options.tls !== undefined });
  const askOptions = () => ({ secret: serverSecret, clock, tls: peerTls });
  const handler = createAdminApp({
    ...options,
    environment,
    listLimitSetters: () => limitSettersIn(servers),
    hasAllQuotas: hasAllQuotas(config),
    url,
    authentication,
    operatorRates: new OperatorRates(clock, options.operatorRate),
    proofOf(nonce, { headers }) {
      const { origin } = ownUrls.find(({ host }) => host === headers.get("host")) ?? new URL(url);
      return serverSecret.proofOf(nonce, origin);
    },
    signResponseTo({ method, path, query, headers }) {
      const target = query === "" ? path : `${path}?${query}`;
      const authorization = headers.get("authorization") ?? "";
      const request = { method, target, at: clock.now() };
      const isSigned = ownUrls.some(({ origin: to }) =>
        serverSecret.isAuthorized(authorization, { ...request, to }),
      );
      return isSigned ? (body) => serverSecret.responseSignature(authorization, body) : undefined;
    },
    async askForRequests(other, query) {
      return problemOf(other) ?? askForRequests(other, query, askOptions());
    },
    async askForSeries(other, range) {
      return problemOf(other) ?? askServer(other, "getSeries", { ...askOptions(), query: { range } });
    },
    applyOperatorChanges: () => authentication.changed(),
  });
  return {
    ...handler,
    url,
    signedUrl: () => serverSecret.urlOf(servers.self, machineUrl, clock.now()),
    setTlsCertificate(certificate: TlsCertificate) {
      peerTls = peerTlsOf(publicUrl, certificate.cert);
    },
  };
}
