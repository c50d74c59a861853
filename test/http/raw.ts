import { type HttpResponse, parseResponse, RawConnection } from "../../trials/harness/http-connection.ts";

/** Sends a text on a connection of its own, and gives the text of the response. */
export async function sendRaw(url: string, text: string): Promise<string> {
  const connection = new RawConnection(Number(new URL(url).port));
  await connection.write(text);
  const response = await connection.response(text.slice(0, text.indexOf(" ")));
  connection.socket.destroy();
  return response;
}

interface LateRequest {
  readonly method?: string;
  /** The path, with the base path. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: unknown;
}

const CONTINUE = "HTTP/1.1 100 Continue\r\n\r\n";

/**
 * Sends the head of a request and five bytes of its body. When this resolves, the server has authenticated the request.
 * The result sends the rest.
 */
export async function startRequest(
  url: string,
  { method = "POST", path, headers, body }: LateRequest,
): Promise<() => Promise<HttpResponse>> {
  const connection = new RawConnection(Number(new URL(url).port));
  const text = JSON.stringify(body);
  const fields = { Host: "localhost", "Content-Type": "application/json", ...headers };
  const lines = Object.entries({ ...fields, "Content-Length": text.length, Expect: "100-continue" });
  await connection.write(
    `${method} ${path} HTTP/1.1\r\n${lines.map((line) => `${line.join(": ")}\r\n`).join("")}\r\n`,
  );
  const begun = await connection.response();
  if (begun !== CONTINUE) throw new Error(`instead of 100 Continue: ${begun}`);
  await connection.write(text.slice(0, 5));
  return async () => {
    await connection.write(text.slice(5));
    const response = parseResponse(await connection.response(method), method);
    connection.socket.destroy();
    if (response === undefined) throw new Error("no response");
    return response;
  };
}
