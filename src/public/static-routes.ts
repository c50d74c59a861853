import { CLIENT_PACKAGE_PATHS, DOCS_PATH, HEALTH_PATH, LLMS_PATH } from "../domain/paths.ts";
import type { DocumentedSettings } from "./documented-settings.ts";
import { docsUrl, siteUrl } from "./site-urls.ts";
import { READ_METHODS, READ_ALLOWED } from "../api/api.ts";
import { methodNotAllowed, serviceUnavailable } from "../api/errors.ts";
import { shortDuration } from "../text/durations.ts";
import { formatTime } from "../text/formatting.ts";
import { andThen, type Awaitable } from "../runtime/awaitable.ts";
import { loadFor } from "../runtime/load-once.ts";
import type { Clock } from "../domain/ports/clock.ts";
import { type Decision } from "../domain/rate-limit.ts";
import { DAY_MS } from "../text/time-units.ts";
import { headerLine, type Request, type Response } from "../http1/index.ts";
import { type ContentRequest, EncodedContent } from "../api/content-encoding.ts";
import { emptyResponse, headerLinesOf, jsonResponse, NO_STORE, retryAfterLine } from "../api/responses.ts";
import { rateLimitedResponse, rateLimitLines, rejectionResponse, type StaticRoute } from "./responses.ts";

type PageRequest = Pick<Request, "method" | "path"> & ContentRequest;

/** Serves the documentation, `/` for browsers, and the client library. Returns undefined if the page does not exist. */
export interface DocsPages {
  respond(request: PageRequest, headerLines: string): Awaitable<Response | undefined>;
}

/** What programs read about the API. */
export interface ApiDocuments {
  /** Returns another text when the documents have changed. */
  version(settings: DocumentedSettings): string;
  openApiJson(settings: DocumentedSettings): Promise<string>;
  openApiYaml(settings: DocumentedSettings): Promise<string>;
}

interface StaticRouteOptions {
  /** The value of `Allow` for the API as a whole. */
  readonly allowed: string;
  readonly documents: ApiDocuments;
  readonly docsSettings: DocumentedSettings;
  readonly docsPages: DocsPages;
  /** URIs; without any there is no security.txt. */
  readonly securityContacts: readonly string[];
  readonly clock: Pick<Clock, "now">;
  /** Resolves when the server has started, to whether it goes on serving. */
  readonly isServing: () => Promise<boolean>;
}

/** The routes outside the API, which need no key, by path. */
export function staticRoutes(options: StaticRouteOptions) {
  const { documents, docsSettings, docsPages, securityContacts, clock, isServing } = options;
  const docs = route((request, lines) => docsPages.respond(request, lines));
  const allowAll = headerLinesOf({ Allow: options.allowed });
  const openApi = (build: (settings: DocumentedSettings) => Promise<string>, type: string) =>
    content(
      () => build(docsSettings),
      type,
      () => documents.version(docsSettings),
    );
  const routes = new Map<string, StaticRoute>([
    ["/", route(rootResponse(docsSettings, docsPages))],
    [DOCS_PATH, docs],
    [LLMS_PATH, docs],
    ["/openapi.json", openApi(documents.openApiJson, "application/json")],
    // The media type is defined in RFC 9512.
    ["/openapi.yaml", openApi(documents.openApiYaml, "application/yaml")],
    ["/robots.txt", content(() => robots(docsSettings), PLAIN_TEXT)],
    [HEALTH_PATH, { ...route(async () => health(await isServing())), isRateLimited: false }],
    // The parser accepts this target only with OPTIONS (RFC 9112, section 3.2.4).
    ["*", { ...docs, respond: (_, lines) => emptyResponse(204, lines + allowAll) }],
  ]);
  if (securityContacts.length > 0) {
    const expiry = () => expiryOf(clock.now());
    const text = () => securityText(securityContacts, expiry(), docsSettings);
    routes.set(SECURITY_PATH, content(text, PLAIN_TEXT, expiry));
  }
  return (path: string) =>
    routes.get(path) ??
    (path.startsWith(`${DOCS_PATH}/`) || CLIENT_PACKAGE_PATHS.test(path) ? docs : undefined);
}

type Respond = StaticRoute["respond"];

function route(respond: Respond): StaticRoute {
  return { isRateLimited: true, respond: onlyGet(respond), rejectLimited };
}

function onlyGet(respond: Respond): Respond {
  return (request, headerLines) =>
    READ_METHODS.has(request.method)
      ? respond(request, headerLines)
      : rejectionResponse(
          methodNotAllowed(request.method, READ_ALLOWED),
          headerLines + headerLine("Allow", READ_ALLOWED),
        );
}

function health(isServing: boolean): Response {
  return isServing
    ? jsonResponse(200, NO_STORE, '{"status":"ok"}')
    : rejectionResponse(serviceUnavailable(1), "");
}

const PLAIN_TEXT = "text/plain; charset=utf-8";

/** Makes a route whose text is built at the first request, and again when the version is another one. */
function content(
  build: () => Awaitable<string>,
  contentType: string,
  currentVersion: () => unknown = () => undefined,
): StaticRoute {
  const headerLines = headerLinesOf({ "Content-Type": contentType });
  const built = loadFor(currentVersion, () =>
    andThen(build(), (text) => new EncodedContent({ text, headerLines })),
  );
  return route((request, lines) => andThen(built(), (encoded) => encoded.respond(request, lines)));
}

/** Crawlers may read the documentation of production. */
function robots({ environment, baseUrl }: DocumentedSettings): string {
  const hidden = environment === "production" ? `${new URL(baseUrl).pathname}/` : "/";
  return `User-agent: *\nDisallow: ${hidden}\n`;
}

const SECURITY_PATH = "/.well-known/security.txt";
const SECURITY_TEXT_LIFETIME_MS = 180 * DAY_MS;

/** RFC 9116 asks for a time within a year. It changes once a day. */
function expiryOf(now: number): string {
  return formatTime(now - (now % DAY_MS) + SECURITY_TEXT_LIFETIME_MS);
}

function securityText(contacts: readonly string[], expires: string, { baseUrl }: DocumentedSettings): string {
  const lines = [
    ...contacts.map((contact) => `Contact: ${contact}`),
    `Expires: ${expires}`,
    `Canonical: ${siteUrl(baseUrl, SECURITY_PATH)}`,
  ];
  return `${lines.join("\n")}\n`;
}

/** Serves `/`, which is a page for browsers, and names all addresses for programs. */
function rootResponse(settings: DocumentedSettings, pages: DocsPages): Respond {
  const { baseUrl } = settings;
  const root = {
    name: "Petstore API",
    environment: settings.environment,
    api: baseUrl,
    docs: docsUrl(baseUrl),
    openapi: siteUrl(baseUrl, "/openapi.json"),
  };
  const json = new EncodedContent({
    text: JSON.stringify(root),
    headerLines: headerLinesOf({ "Content-Type": "application/json" }),
    vary: "Accept",
  });
  return (request, lines) => {
    if (!acceptsHtml(request.headers.get("accept"))) return json.respond(request, lines);
    return andThen(pages.respond(request, lines), (page) => page ?? json.respond(request, lines));
  };
}

function rejectLimited({ headers }: Request, decision: Decision): Response {
  return acceptsHtml(headers.get("accept")) ? rateLimitedPage(decision) : rateLimitedResponse(decision);
}

/** The page for a reader who is rate limited. It needs no other file, and reloads when it may. */
function rateLimitedPage(decision: Decision): Response {
  const { retryAfterSeconds } = decision;
  const body = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="refresh" content="${retryAfterSeconds}">
<title>Too many requests · Petstore API</title>
<h1>Too many requests</h1>
<p>Your network has asked for too many pages. This one loads again by itself in ${shortDuration(retryAfterSeconds * 1_000)}.</p>
`;
  const headerLines = PAGE_LINES + NO_STORE + rateLimitLines(decision) + retryAfterLine(retryAfterSeconds);
  return { status: 429, headerLines, body };
}

const PAGE_LINES = headerLinesOf({
  "Content-Type": "text/html; charset=utf-8",
  "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
});

/** Whether a client asks for HTML. Browsers name HTML; programs name JSON or accept anything. */
export function acceptsHtml(accept: string | null): boolean {
  return accept?.toLowerCase().includes("text/html") === true;
}
