import { expect, test } from "bun:test";
import { useService } from "../service.ts";
import { sendRaw } from "./raw.ts";

const service = await useService();
/** `fetch` would change some of the paths. */
const get = (path: string) =>
  sendRaw(service.url, `GET /v1${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${service.key}\r\n\r\n`);

const UNKNOWN =
  "/nothing  / /pets/ /pets/1/ /pets/1/2 //pets /Pets /store /store/orders/1/x /pets%2F1 /store%2Forders /%zz /pets;a=b";

test.each([...UNKNOWN.split(" "), "/./pets", "/x/../pets", "/%2e%2e/v1/pets"])(
  "any 404 not_found: the path %p",
  async (path) => {
    const response = await get(path);
    expect(response).toStartWith("HTTP/1.1 404 ");
    expect(response).toContain('{"code":"not_found",');
  },
);

test("every part of a path may be percent-encoded", async () => {
  const encoded = (text: string) =>
    [...text].map((character) => `%${character.charCodeAt(0).toString(16)}`).join("");
  const id = encoded(String(await service.newPet()));
  for (const path of ["/%70ets", `/pets/${id}`, `/p%65ts/${id}`, "/store/%6frder%73", `/${encoded("key")}`])
    expect(await get(path)).toStartWith("HTTP/1.1 200 ");
});
