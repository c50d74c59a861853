/**
 * The furthest limit: sockets that answer from memory with the head and the bytes that Petstore answers with. Whatever
 * comes is taken for one request, as wrk sends it, and of a request no more is looked at than which route it is for.
 *
 * bun bench/socket.ts REPLIES.json prints {"WORK": PORT, …}: a listener for each work.
 */
import { readFileSync } from "node:fs";
import type { Replies, Reply } from "./replies.ts";

const replies = JSON.parse(readFileSync(process.argv[2] ?? "", "utf8")) as Replies;

function written({ status, headers, body }: Reply): string {
  const lines = Object.entries({ ...headers, Date: new Date().toUTCString() }).map(
    ([name, value]) => `${name}: ${value}\r\n`,
  );
  const length = `Content-Length: ${Buffer.byteLength(body)}\r\n`;
  return `HTTP/1.1 ${status} Whatever\r\n${lines.join("")}${length}\r\n${body}`;
}

const ABSENT: Reply = { status: 404, headers: {}, body: "" };
const POST = "P".charCodeAt(0);
const SLASH = "/".charCodeAt(0);
/** Where the identifier's slash stands in `GET /v1/pets/7`. */
const BEFORE_IDENTIFIER = "GET /v1/pets".length;

const ports = Object.entries(replies).map(([work, { list, get, create }]) => {
  const page = written(list ?? ABSENT);
  const animal = written(get ?? ABSENT);
  const added = written(create ?? ABSENT);
  const server = Bun.listen({
    hostname: "127.0.0.1",
    port: 0,
    socket: {
      data(socket, bytes) {
        socket.write(bytes[0] === POST ? added : bytes[BEFORE_IDENTIFIER] === SLASH ? animal : page);
      },
    },
  });
  return [work, server.port];
});
process.stdout.write(`${JSON.stringify(Object.fromEntries(ports))}\n`);
