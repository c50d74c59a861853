export type TlsOptions = Pick<BunFetchRequestInitTLS, "ca" | "checkServerIdentity" | "rejectUnauthorized">;

/**
 * The TLS options for requests to this machine: the certificate is for the name that clients use, and not for this
 * address.
 */
export const UNVERIFIED_TLS: TlsOptions = { rejectUnauthorized: false };

interface GetOptions {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly tls: TlsOptions;
  readonly timeoutMs: number;
}

/** The longest response. A page of 500 requests has about 200 KB, and at most 600 KB. */
const MAX_BYTES = 1_024 * 1_024;

/** Sends a request to a server directly, even if HTTP_PROXY names a proxy. */
export async function getText(url: string, { method = "GET", headers = {}, tls, timeoutMs }: GetOptions) {
  const signal = AbortSignal.timeout(timeoutMs);
  const response = await fetch(url, {
    method,
    headers,
    tls,
    signal,
    proxy: false,
    redirect: "manual",
    keepalive: false,
  });
  const decoder = new TextDecoder();
  let text = "";
  for await (const part of response.body ?? []) {
    text += decoder.decode(part, { stream: true });
    if (text.length > MAX_BYTES) throw new Error("the response is too long");
  }
  return { status: response.status, headers: response.headers, text };
}
