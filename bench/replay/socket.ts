/**
 * The bare socket: Petstore's responses from memory. Whatever arrives counts as one request, as wrk sends it, and only
 * the bytes that select the route are read.
 */
import { type CapturedResponse, replay } from "./responses.ts";

const NOT_FOUND: CapturedResponse = { status: 404, headers: {}, body: "" };

function bytesOf({ status, headers, body }: CapturedResponse = NOT_FOUND): string {
  const fields = { ...headers, Date: new Date().toUTCString(), "Content-Length": Buffer.byteLength(body) };
  const lines = Object.entries(fields).map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 ${status} Status\r\n${lines.join("")}\r\n${body}`;
}

const POST = "P".charCodeAt(0);
const SLASH = "/".charCodeAt(0);
/** Where `GET /v1/pets/7` has the slash before the identifier. */
const IDENTIFIER_AT = "GET /v1/pets".length;

replay(({ list, get, create }) => {
  const [page, pet, created] = [bytesOf(list), bytesOf(get), bytesOf(create)];
  const data = (socket: Bun.Socket, bytes: Buffer) => {
    socket.write(bytes[0] === POST ? created : bytes[IDENTIFIER_AT] === SLASH ? pet : page);
  };
  return Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data } });
});
