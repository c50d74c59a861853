import { expect, test } from "bun:test";
import { audit } from "../../harness/audit.ts";

/** Pages of pets, as the API gives them. */
function serve(...pages: readonly (readonly { id: number; name: string }[])[]) {
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

test("an acknowledged pet that is missing or has another id is lost; a pet that exists twice is duplicated", async () => {
  using server = serve(
    [
      { id: 1, name: "stored" },
      { id: 2, name: "twice" },
    ],
    [
      { id: 3, name: "twice" },
      { id: 4, name: "other id" },
    ],
  );
  const acknowledged = new Map([
    ["stored", "1"],
    ["twice", "2"],
    ["missing", "5"],
    ["other id", "9"],
  ]);
  expect(await audit(server.url, "any", acknowledged)).toEqual({
    acknowledged: 4,
    lost: ["missing", "other id"],
    duplicated: ["twice"],
  });
});
