import { expect, test } from "bun:test";
import { useService } from "../service.ts";
import { sendRaw } from "./raw.ts";

const service = await useService();
/** `fetch` would change some of the paths. */
const get = (path: string) =>
  sendRaw(service.url, `GET /v1${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${service.key}\r\n\r\n`);

const UNKNOWN =
  "/nothing  / /pets/ /pets/1/ /pets/1/2 //pets /Pets /store /store/orders/1/x /%70ets /pets;a=b";

test.each([...UNKNOWN.split(" "), "/./pets", "/x/../pets", "/%2e%2e/v1/pets"])(
  "any 404 not_found: the path %p",
  async (path) => {
    const response = await get(path);
    expect(response).toStartWith("HTTP/1.1 404 ");
    expect(response).toContain('{"code":"not_found",');
  },
);

test("the identifier of a path may be percent-encoded", async () => {
  const id = String(await service.newPet());
  const encoded = [...id].map((digit) => `%${digit.charCodeAt(0).toString(16)}`).join("");
  expect(await get(`/pets/${encoded}`)).toStartWith("HTTP/1.1 200 ");
});
