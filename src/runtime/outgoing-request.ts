/* Every HTTP request that this process sends to an address that somebody has named. */

import packageJson from "../../package.json" with { type: "json" };
import { scheduler } from "./scheduler.ts";
import { systemErrorField } from "./system-error.ts";

export type TlsOptions = Pick<BunFetchRequestInitTLS, "ca" | "checkServerIdentity" | "rejectUnauthorized">;

/**
 * The TLS options for requests to this machine: its certificate is for the name that clients use, not for its address.
 */
export const UNVERIFIED_TLS: TlsOptions = { rejectUnauthorized: false };

export interface OutgoingRequest {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  readonly body?: string | null;
  /** The time for everything: the connection, the head and the body of the response. */
  readonly timeoutMs: number;
  /** The longest body of a response. The runtime bounds the head: 255 lines, and less than 2 MiB. */
  readonly maxBytes: number;
  /**
   * For a caller who needs the status and the beginning of the body: whether this beginning is enough. A body that is
   * too long, breaks off or takes too long is then cut.
   */
  readonly isEnough?: (text: string) => boolean;
  /** Ends the request. */
  readonly signal?: AbortSignal;
  /** By default the certificate must be from an authority of the machine. */
  readonly tls?: TlsOptions;
  /** Whether no proxy of the variables HTTP_PROXY and HTTPS_PROXY is used. */
  readonly isDirect?: boolean;
}

export interface OutgoingResponse {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  readonly durationMs: number;
}

/** Why there is no response. The message has no part of the URL, which may contain secrets, and the error no cause. */
export class OutgoingError extends Error {
  constructor(
    /** A code of the system or of the runtime, or `timeout`, `aborted`, `too long` or `invalid`. */
    readonly code: string,
    message = code,
  ) {
    super(message);
  }

  override get name() {
    return "OutgoingError";
  }
}

/**
 * Sends a request on a connection of its own, which is closed afterwards. Follows no redirect, because the operator has
 * named the address that gets the request, and decompresses nothing. Rejects with an OutgoingError.
 */
export async function sendRequest(url: string, request: OutgoingRequest): Promise<OutgoingResponse> {
  const { method = "GET", headers, body, timeoutMs, maxBytes, isEnough, tls, isDirect } = request;
  const startedAt = scheduler.now();
  const ended = new AbortController();
  let isLate = false;
  const timer = scheduler.setTimeout(() => {
    isLate = true;
    ended.abort();
  }, timeoutMs);
  const signals = [ended.signal, ...(request.signal ? [request.signal] : [])];
  try {
    const response = await fetch(url, {
      method,
      headers: {
        "Accept-Encoding": "identity",
        "User-Agent": `Petstore/${packageJson.version}`,
        ...headers,
      },
      ...(body && { body }),
      redirect: "manual",
      decompress: false,
      keepalive: false,
      signal: AbortSignal.any(signals),
      ...(isDirect === true && { proxy: false }),
      ...(/^https:/i.test(url) && { tls: tls ?? trustedTls() }),
    });
    const reading = new BodyText(maxBytes);
    try {
      await reading.read(response, isEnough);
    } catch (error) {
      if (isEnough === undefined) throw error;
    }
    const { status } = response;
    return { status, headers: response.headers, text: reading.text, durationMs: since(startedAt) };
  } catch (error) {
    if (isLate) throw new OutgoingError("timeout", `no response within ${timeoutMs / 1_000} seconds`);
    throw request.signal?.aborted ? new OutgoingError("aborted") : outgoingError(error);
  } finally {
    timer.close();
    ended.abort();
  }
}

class BodyText {
  text = "";
  readonly #decoder = new TextDecoder();

  constructor(private readonly maxBytes: number) {}

  /** Reads to the end, or until it is enough. */
  async read({ body }: Response, isEnough: OutgoingRequest["isEnough"]): Promise<void> {
    let left = this.maxBytes;
    // Leaving the loop cancels the rest.
    for await (const part of body ?? []) {
      this.text += this.#decoder.decode(part.subarray(0, left), { stream: true });
      left -= part.length;
      if (left < 0) throw new OutgoingError("too long", `the response has more than ${this.maxBytes} bytes`);
      if (isEnough?.(this.text)) return;
    }
    this.text += this.#decoder.decode();
  }
}

const since = (startedAt: number): number => Math.round(scheduler.now() - startedAt);

/** The authorities of the runtime, of NODE_EXTRA_CA_CERTS and of the system, read once. */
let authorities: string[] | undefined;

/** The certificate is verified also if NODE_TLS_REJECT_UNAUTHORIZED turns that off. */
function trustedTls(): TlsOptions {
  authorities ??= trustedAuthorities();
  return { rejectUnauthorized: true, ca: authorities };
}

/** `node:tls` is loaded when it is used, because that takes 10 ms. */
function trustedAuthorities(): string[] {
  const { getCACertificates } = process.getBuiltinModule("node:tls");
  return [...new Set([...getCACertificates("default"), ...getCACertificates("system")])];
}

const UNTRUSTED =
  "its certificate is not from an authority that this machine trusts; name the file of its authority in NODE_EXTRA_CA_CERTS";

/** What is wrong with the TLS of a server, by the code of the error. */
const TLS_PROBLEMS: Readonly<Record<string, string>> = {
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: UNTRUSTED,
  UNABLE_TO_GET_ISSUER_CERT: UNTRUSTED,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: UNTRUSTED,
  SELF_SIGNED_CERT_IN_CHAIN: UNTRUSTED,
  DEPTH_ZERO_SELF_SIGNED_CERT: UNTRUSTED,
  CERT_HAS_EXPIRED: "its certificate has expired; renew it there, or check the clock of this machine",
  CERT_NOT_YET_VALID: "its certificate is not valid yet; check the clock of this machine",
  ERR_TLS_CERT_ALTNAME_INVALID: "its certificate is for another host name; use the name that it is for",
  EPROTO: "it does not use TLS on this port",
};

/** Why a server is not trusted; undefined if the error is another one. */
export function trustProblem(error: unknown): string | undefined {
  return error instanceof OutgoingError ? TLS_PROBLEMS[error.code] : undefined;
}

/** The messages of the runtime contain the URL, with its query. Its codes are constants. */
function outgoingError(error: unknown): OutgoingError {
  if (error instanceof OutgoingError) return error;
  const code = systemErrorField(error, "code");
  return code !== undefined && /^\w+$/.test(code)
    ? new OutgoingError(code)
    : new OutgoingError("invalid", "the request cannot be sent, or the response is not HTTP");
}
