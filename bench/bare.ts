/**
 * The bare route: Bun.serve answering from memory with the status, headers and bytes that Petstore answers with.
 * Nothing is looked up, counted, checked or written. Headers are given as an object with each answer, since in
 * reality their values differ from one to the next. A create reads its body, and that is all.
 *
 * bun bench/bare.ts REPLIES.json prints {"WORK": PORT, …}: a listener for each work, so that no route has to choose.
 */
import { readFileSync } from "node:fs";
import type { Replies, Reply } from "./replies.ts";

const replies = JSON.parse(readFileSync(process.argv[2] ?? "", "utf8")) as Replies;

function answering({ status, headers, body }: Reply) {
  return () => new Response(body, { status, headers });
}

function reading({ status, headers, body }: Reply) {
  return async (request: Request) => {
    await request.json();
    return new Response(body, { status, headers });
  };
}

const absent = () => new Response(null, { status: 404 });

const ports = Object.entries(replies).map(([work, { list, get, create }]) => {
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    development: false,
    routes: {
      "/v1/pets":
        list && create
          ? { GET: answering(list), POST: reading(create) }
          : list
            ? answering(list)
            : create
              ? reading(create)
              : absent,
      "/v1/pets/:petId": get ? answering(get) : absent,
      "/*": absent,
    },
  });
  return [work, server.port];
});
process.stdout.write(`${JSON.stringify(Object.fromEntries(ports))}\n`);
