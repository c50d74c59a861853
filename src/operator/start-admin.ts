import { hostname, networkInterfaces } from "node:os";
import { Rejection } from "../api/errors.ts";
import type { AdminConfig } from "../config/config.ts";
import { adminTls, originOf } from "../config/listen-urls.ts";
import { type FollowedSetting, followSetting } from "../config/follow-files.ts";
import { OIDC_OPTIONS } from "../config/options.ts";
import { readFromFile } from "../config/parse-options.ts";
import { SECURITY_HEADER_LINES } from "../api/responses.ts";
import type { ActivityCollector } from "../domain/servers.ts";
import type { HttpServer, HttpServerOptions, TlsCertificate } from "../http1/index.ts";
import { reportSettingFiles } from "../observe/event-reports.ts";
import { createAdminApp } from "./admin-app.ts";
import { listenForOperators } from "./admin-listener.ts";
import type { ServerServices } from "./services.ts";
import { type OperatorRate, OperatorRates } from "./operator-rates.ts";
import type { AdminCredentials } from "./sign-in/open-credentials.ts";
import { ProviderSignIn } from "./sign-in/provider-sign-in.ts";
import { AdminAuthentication } from "./sign-in/admin-authentication.ts";
import { createSignInUrl } from "./sign-in/code.ts";

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

interface StartAdminOptions extends ServerServices {
  readonly admin: AdminConfig;
  /** Reports to the other servers the URL by which other machines reach this listener. */
  readonly activity: Pick<ActivityCollector, "add">;
  readonly credentials: AdminCredentials;
  /** The rate of each operator; higher in tests. */
  readonly operatorRate: OperatorRate | undefined;
  readonly tls: TlsCertificate | undefined;
  /** Groups the connections that count together. */
  readonly peerOf: NonNullable<HttpServerOptions["peerOf"]>;
}

/** Serves operators on a listener of their own. Throws AdminListenError if it cannot listen on the address. */
export function startAdmin(options: StartAdminOptions): AdminListener {
  const { admin, operators, clock, log } = options;
  const tls = adminTls(admin, options.tls);
  const { followTokens, tokenFile } = options.credentials;
  const providerSecret = followProviderSecret(options);
  const server = listenForOperators(admin, {
    createHandler: ({ port }) =>
      handlerWithUrls({ ...options, port, isTls: tls !== undefined, providerSecret }),
    headerLines: SECURITY_HEADER_LINES,
    tls,
    peerOf: options.peerOf,
    onError: (error) => log.event("connection.failed", { error }),
  });
  const { handler } = server;
  const { url } = handler;
  const opened = new AsyncDisposableStack();
  opened.defer(() => providerSecret.close());
  opened.defer(() => server.close(0));
  opened.defer(followTokens());
  opened.defer(options.activity.add(() => ({ adminUrl: handler.machineUrl })));
  return {
    url,
    async createSignInUrl() {
      const signInUrl = await createSignInUrl({ url, operators, clock, madeBy: `serve (${hostname()})` });
      return signInUrl instanceof Rejection ? url : signInUrl;
    },
    tokenFile,
    server,
    setTlsCertificate: (certificate) => server.setTlsCertificate(certificate),
    close: () => opened.disposeAsync(),
  };
}

function followProviderSecret({ admin: { provider }, log }: StartAdminOptions): FollowedSetting<string> {
  return followSetting(
    { setting: "oidc-client-secret-file", file: provider?.secretFile, first: provider?.secret ?? "" },
    (file) => readFromFile(OIDC_OPTIONS["oidc-client-secret"], file),
    reportSettingFiles(log),
  );
}

interface AdminHandlerOptions extends StartAdminOptions {
  readonly port: number;
  readonly isTls: boolean;
  /** The secret of this client at the provider, if there is one. */
  readonly providerSecret: FollowedSetting<string>;
}

/** The handler of the listener, with the URLs by which operators reach it, here and from other machines. */
function handlerWithUrls(options: AdminHandlerOptions) {
  const { admin, environment, operators, audit, clock, log, port, isTls, providerSecret } = options;
  const url = originOf({ host: admin.host, port, isTls });
  // Cookies do not distinguish ports, so each listener of a machine has a cookie of its own.
  const cookieName = `petstore-admin-${port}`;
  const authentication = new AdminAuthentication({ operators, audit, cookieName, clock, log });
  const applyOperatorChanges = () => authentication.changed();
  const operatorRates = new OperatorRates(clock, options.operatorRate);
  const { provider } = admin;
  const secret = () => providerSecret.current;
  const providerSignIn =
    provider &&
    new ProviderSignIn({
      provider,
      secret,
      environment,
      operators,
      audit,
      clock,
      log,
      applyOperatorChanges,
    });
  const handler = createAdminApp({
    ...options,
    url,
    authentication,
    providerSignIn,
    operatorRates,
    applyOperatorChanges,
  });
  return { ...handler, url, machineUrl: originOf({ host: machineAddress(admin.host), port, isTls }) };
}

/** The address of a listener for other machines. If it listens on all addresses, one of them is chosen. */
function machineAddress(host: string): string {
  if (host !== "0.0.0.0" && host !== "::") return host;
  const addresses = Object.values(networkInterfaces()).flatMap((each) => each ?? []);
  return addresses.find(({ internal, family }) => !internal && family === "IPv4")?.address ?? host;
}
