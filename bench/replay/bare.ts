/**
 * The bare route: Bun.serve with Petstore's responses from memory. Nothing is looked up, counted, validated or stored.
 * Headers are given as an object with each response, since their values differ from request to request in a real
 * server. A create parses its body and ignores it.
 */
import { type CapturedResponse, replay } from "./responses.ts";

function respond({ status, headers, body }: CapturedResponse) {
  return () => new Response(body, { status, headers });
}

function parseAndRespond({ status, headers, body }: CapturedResponse) {
  return async (request: Request) => {
    await request.json();
    return new Response(body, { status, headers });
  };
}

const notFound = () => new Response(null, { status: 404 });

replay(({ list, get, create }) => {
  const GET = list && respond(list);
  const POST = create && parseAndRespond(create);
  const routes = {
    "/v1/pets": GET && POST ? { GET, POST } : (GET ?? POST ?? notFound),
    "/v1/pets/:petId": get ? respond(get) : notFound,
    "/*": notFound,
  };
  return Bun.serve({ hostname: "127.0.0.1", port: 0, development: false, routes });
});
