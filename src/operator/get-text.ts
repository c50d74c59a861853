import type { ConnectionOptions } from "node:tls";

export type TlsOptions = Pick<ConnectionOptions, "ca" | "checkServerIdentity" | "rejectUnauthorized">;

/** For this machine: the certificate is for the name that clients use, which is not this address. */
export const UNVERIFIED: TlsOptions = { rejectUnauthorized: false };

interface GetOptions {
  readonly headers?: Readonly<Record<string, string>>;
  readonly tls: TlsOptions;
}

const TIMEOUT_MS = 2_000;
/** A page of 500 requests has about 200 KB, and at most 600 KB. */
const MAX_BYTES = 1_024 * 1_024;

/**
 * Asks a server. `fetch` would ask the proxy that HTTP_PROXY names. The modules are loaded here, because that takes
 * 9 ms, which no other command should wait for.
 */
export async function getText(url: string, { headers = {}, tls }: GetOptions) {
  const { get } = await (url.startsWith("https:") ? import("node:https") : import("node:http"));
  const options = { ...tls, headers, agent: false, signal: AbortSignal.timeout(TIMEOUT_MS) } as const;
  return new Promise<{ readonly status: number | undefined; readonly text: string }>((resolve, reject) => {
    const request = get(url, options, (response) => {
      let text = "";
      response.setEncoding("utf8");
      response.on("data", (part: string) => {
        text += part;
        if (text.length > MAX_BYTES) request.destroy(new Error("the response is too long"));
      });
      response.on("end", () => resolve({ status: response.statusCode, text }));
      response.on("error", reject);
    });
    request.on("error", reject);
  });
}
