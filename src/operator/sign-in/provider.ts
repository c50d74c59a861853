/*
 * The authorization code flow of OpenID Connect with one provider. Nothing of a sign-in in progress is stored here: the
 * page keeps the state, the nonce and the code verifier (PKCE) in its tab, and sends them with the provider's response.
 * So the response may reach another server, and in another browser it is worth nothing.
 */

import * as openId from "openid-client";
import { messageOf } from "../../runtime/message-of.ts";
import type { ProviderConfig } from "../../config/config.ts";
import type { Claims, RoleRule } from "../../domain/role-rules.ts";
import { scheduler } from "../../runtime/scheduler.ts";
import {
  OutgoingError,
  type OutgoingResponse,
  sendRequest,
  trustProblem,
} from "../../runtime/outgoing-request.ts";
import { printable } from "../../text/formatting.ts";
import { parse, readKeys, readMetadata, verifiedAddress } from "./provider-documents.ts";

/** The time for all requests of a step together. It is shorter than the time of an operation. */
const STEP_MS = 6_000;
/** How long the discovery document is kept. A change of it is followed after this time. */
const DOCUMENT_KEPT_MS = 10_000;
/** The longest response. A person may be in thousands of groups. */
const MAX_RESPONSE_BYTES = 512 * 1024;
const MAX_REASON_LENGTH = 200;
/** How much the clocks of the provider and of this machine may differ. */
const CLOCK_TOLERANCE_SECONDS = 30;

/** OpenID Connect Core 1.0, section 2. */
const SUBJECT = /^[ -~]{1,255}$/;

/** What the page keeps until the provider has responded. */
interface SignInSecrets {
  readonly state: string;
  readonly nonce: string;
  readonly codeVerifier: string;
}

export interface ProviderResponse extends SignInSecrets {
  /** The query with which the provider has sent the browser back. */
  readonly response: string;
  readonly redirectUri: string;
}

/** A person whom the provider has authenticated. */
export interface Person {
  /** The issuer and the subject. */
  readonly subject: string;
  /** The verified email address, in lower case. */
  readonly address: string | undefined;
  readonly claims: Claims;
}

/** A response that signs nobody in: the provider has rejected them, or did not send it to this page, or not now. */
export interface RejectedResponse {
  readonly rejectedBecause: string;
}

/** The provider does not respond, or not as it should. The message has no secret. */
export class ProviderError extends Error {
  override readonly name = "ProviderError";
}

export interface ProviderClient extends Pick<ProviderConfig, "issuer" | "clientId" | "rules"> {
  /** Returns the secret of the client, which may change. */
  readonly secret: () => string;
}

/** A provider, and what is kept of it. */
export class Provider {
  readonly #client: ProviderClient;
  readonly #now: () => number;
  #document: { readonly readAt: number; readonly response: Promise<OutgoingResponse> } | undefined;

  constructor(client: ProviderClient, now: () => number) {
    this.#client = client;
    this.#now = now;
  }

  /** Checks the discovery document. Throws ProviderError. */
  async check(): Promise<void> {
    await this.#discover();
  }

  /** Returns the URL to which the page sends the browser, and what the page keeps meanwhile. Throws ProviderError. */
  async beginSignIn(redirectUri: string, state: string) {
    const configuration = await this.#discover();
    const nonce = openId.randomNonce();
    const codeVerifier = openId.randomPKCECodeVerifier();
    const url = openId.buildAuthorizationUrl(configuration, {
      redirect_uri: redirectUri,
      scope: scopeOf(configuration, this.#client.rules),
      state,
      nonce,
      code_challenge: await openId.calculatePKCECodeChallenge(codeVerifier),
      code_challenge_method: "S256",
    });
    return { url: url.href, state, nonce, codeVerifier };
  }

  /** Trades the code of a response for the claims of the person. Throws ProviderError. */
  async finishSignIn({
    response,
    redirectUri,
    state,
    nonce,
    codeVerifier,
  }: ProviderResponse): Promise<Person | RejectedResponse> {
    const configuration = await this.#discover();
    const url = new URL(redirectUri);
    url.search = response;
    try {
      const tokens = await openId.authorizationCodeGrant(configuration, url, {
        expectedState: state,
        expectedNonce: nonce,
        pkceCodeVerifier: codeVerifier,
        idTokenExpected: true,
      });
      const claims = tokens.claims();
      if (claims === undefined) return { rejectedBecause: "the response has no ID token" };
      const { iss, sub } = claims;
      if (!SUBJECT.test(sub)) return { rejectedBecause: "the ID token has no sub of at most 255 characters" };
      // Providers may have claims in the ID token, at the UserInfo endpoint or in both.
      const more =
        configuration.serverMetadata().userinfo_endpoint === undefined
          ? {}
          : await openId.fetchUserInfo(configuration, tokens.access_token, sub);
      return {
        subject: `${iss} ${sub}`,
        address: verifiedAddress([claims, more]),
        claims: { ...more, ...claims },
      };
    } catch (error) {
      const reason = printableReason(error);
      if (isOfProvider(error)) throw new ProviderError(reason);
      return { rejectedBecause: reason };
    }
  }

  /** Reads the discovery document, and returns how to use what it names, within the time of a step. */
  async #discover(): Promise<openId.Configuration> {
    const { issuer, clientId, secret } = this.#client;
    const url = new URL(issuer);
    const deadline = scheduler.now() + STEP_MS;
    const metadata = { client_secret: secret(), [openId.clockTolerance]: CLOCK_TOLERANCE_SECONDS };
    const discovering = openId.discovery(url, clientId, metadata, clientAuthentication(secret()), {
      // The signature of an ID token is verified although the token comes from the provider itself.
      execute: [
        openId.enableNonRepudiationChecks,
        ...(url.protocol === "http:" ? [openId.allowInsecureRequests] : []),
      ],
      [openId.customFetch]: async (...request) => {
        const received = await this.#readDocument(() => send(request, deadline));
        return responseOf(received, (document) => readMetadata(document, url.protocol));
      },
    });
    const configuration = await discovering.catch((error: unknown) => {
      this.#document = undefined;
      throw new ProviderError(`its discovery document: ${printableReason(error)}`);
    });
    const { jwks_uri: keys } = configuration.serverMetadata();
    configuration[openId.customFetch] = async (...request) =>
      responseOf(await send(request, deadline), request[0] === keys ? readKeys : undefined);
    return configuration;
  }

  /** Anybody can begin sign-ins, which cause one request in this time. */
  #readDocument(read: () => Promise<OutgoingResponse>): Promise<OutgoingResponse> {
    const now = this.#now();
    if (this.#document === undefined || now - this.#document.readAt >= DOCUMENT_KEPT_MS)
      this.#document = { readAt: now, response: read() };
    return this.#document.response;
  }
}

/** Sends the secret in the body if the provider takes it there: on its encoding in a header, providers do not agree. */
function clientAuthentication(secret: string): openId.ClientAuth {
  const [inBody, inHeader] = [openId.ClientSecretPost(secret), openId.ClientSecretBasic(secret)];
  return (server, ...request) => {
    const { token_endpoint_auth_methods_supported: methods } = server;
    (methods?.includes("client_secret_post") ? inBody : inHeader)(server, ...request);
  };
}

/** Some providers have a scope for each claim. They may reject one that they do not list. */
function scopeOf(configuration: openId.Configuration, rules: readonly RoleRule[]): string {
  const { scopes_supported: known = [] } = configuration.serverMetadata();
  const scopes = rules.map(({ claim }) => claim).filter((claim) => known.includes(claim));
  return [...new Set(["openid", "email", "profile", ...scopes])].join(" ");
}

/** Sends a request of the library. All requests of a step end before its deadline. */
function send(
  [url, { method, headers, body }]: Parameters<openId.CustomFetch>,
  deadline: number,
): Promise<OutgoingResponse> {
  const timeoutMs = Math.max(1, deadline - scheduler.now());
  const sent = { method, headers, body: body ? `${body}` : null };
  return sendRequest(url, { ...sent, timeoutMs, maxBytes: MAX_RESPONSE_BYTES });
}

/** Makes the response that the library gets: of a success what `read` makes of its body. */
function responseOf(
  { status, headers, text }: OutgoingResponse,
  read?: (document: unknown) => unknown,
): Response {
  const body = read === undefined || status !== 200 ? text : JSON.stringify(read(parse(text)));
  return new Response(body || null, { status, headers });
}

/** Whether the provider causes the error. Anybody can send a response that is wrong. */
function isOfProvider(error: unknown): boolean {
  if (error instanceof openId.AuthorizationResponseError) return false;
  // An endpoint has rejected the client and not the code.
  if (error instanceof openId.ResponseBodyError) return error.error !== "invalid_grant";
  if (error instanceof openId.WWWAuthenticateChallengeError) return true;
  return causeOf(error) instanceof OutgoingError || causeOf(error) instanceof Response;
}

const causeOf = (error: unknown): unknown => (error instanceof Error ? error.cause : undefined);

function printableReason(error: unknown): string {
  return printable(reasonOfRejection(error)).slice(0, MAX_REASON_LENGTH);
}

function reasonOfRejection(error: unknown): string {
  if (error instanceof openId.AuthorizationResponseError || error instanceof openId.ResponseBodyError) {
    const { error: code, error_description: description } = error;
    return `it responds ${code}${description === undefined ? "" : `: ${description}`}`;
  }
  const cause = causeOf(error);
  if (cause instanceof OutgoingError) return trustProblem(cause) ?? cause.message;
  if (cause instanceof Response) return `it responds ${cause.status}`;
  return messageOf(cause instanceof Error ? cause : error);
}
