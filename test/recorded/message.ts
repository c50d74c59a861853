/** Requests as they go over the connection: texts of bytes, one character each. */
export const ORIGIN = "https://petstore.example";
export const HOST = "Host: petstore.example";
export const JSON_TYPE = "Content-Type: application/json";
export const CHUNKED = "Transfer-Encoding: chunked";

export function message(line: string, headers: readonly string[], body = ""): string {
  return [line, ...headers, "", body].join("\r\n");
}

export function keyLine(key: string): string {
  return `Authorization: Bearer {{${key}}}`;
}

/** The bytes of a text in UTF-8. */
export function utf8(text: string): string {
  return Buffer.from(text).toString("latin1");
}

export function contentLength(body: string): string {
  return `Content-Length: ${body.length}`;
}

/** A body in chunks of so many bytes, with lines behind the last one. */
export function chunks(body: string, size: number, ...trailers: string[]): string {
  const parts = body.match(new RegExp(`[^]{1,${size}}`, "g")) ?? [];
  const lines = parts.flatMap((part) => [part.length.toString(16), part]);
  return [...lines, "0", ...trailers, "", ""].join("\r\n");
}

/** What a client with this key sends. Paths are those behind /v1. */
export function clientOf(key: string) {
  const bare = (method: string, path: string, ...headers: string[]) =>
    message(`${method} /v1${path} HTTP/1.1`, [HOST, keyLine(key), ...headers]);

  /** The body as it stands, with a length. */
  const send = (method: string, path: string, headers: readonly string[], body: string) =>
    message(`${method} /v1${path} HTTP/1.1`, [HOST, keyLine(key), ...headers, contentLength(body)], body);

  /** A text is sent as it stands, anything else as JSON. */
  const write = (method: string, path: string, body: unknown, ...headers: string[]) => {
    const text = typeof body === "string" ? body : JSON.stringify(body);
    return send(method, path, [JSON_TYPE, ...headers], utf8(text));
  };

  return {
    bare,
    send,
    get: bare.bind(undefined, "GET"),
    head: bare.bind(undefined, "HEAD"),
    options: bare.bind(undefined, "OPTIONS"),
    post: write.bind(undefined, "POST"),
    patch: write.bind(undefined, "PATCH"),
  };
}
