import { expect, test } from "bun:test";
import { audit } from "./audit.ts";

/** Two pages of animals, as the interface gives them. */
function shop(...pages: readonly (readonly { id: number; name: string }[])[]) {
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch({ url }) {
      const page = Number(new URL(url).searchParams.get("cursor") ?? 0);
      const next = `<${new URL(url).origin}/v1/pets?cursor=${page + 1}>; rel="next"`;
      return Response.json(pages[page], page + 1 < pages.length ? { headers: { Link: next } } : {});
    },
  });
  return { url: `${server.url.origin}/v1`, [Symbol.dispose]: () => void server.stop(true) };
}

test("what a client was told and is not there, or is another's, is lost; what is there twice is doubled", async () => {
  using place = shop(
    [
      { id: 1, name: "kept" },
      { id: 2, name: "twice" },
    ],
    [
      { id: 3, name: "twice" },
      { id: 4, name: "unasked" },
    ],
  );
  const told = new Map([
    ["kept", "1"],
    ["twice", "2"],
    ["gone", "5"],
    ["unasked", "9"],
  ]);
  expect(await audit(place.url, "any", told)).toEqual({
    acknowledged: 4,
    lost: ["gone", "unasked"],
    doubled: ["twice"],
  });
});
