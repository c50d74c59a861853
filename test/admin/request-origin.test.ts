import { describe, expect, test } from "bun:test";
import { HeaderFields } from "../../src/http1/request-head.ts";
import { isFromOtherOrigin, isOwnHost } from "../../src/operator/admin-app.ts";

function headersOf(fields: Readonly<Record<string, string>>): HeaderFields {
  const lines = Object.entries(fields).map(([name, value]) => `${name}: ${value}\r\n`);
  const headers = HeaderFields.parse(lines.join(""));
  if (typeof headers === "number") throw new Error(`${headers}`);
  return headers;
}

describe("the host", () => {
  const isOwn = (fields: Record<string, string>) =>
    isOwnHost({ headers: headersOf(fields) }, ["admin.example.com"]);

  test("is an own one: an IP address, localhost, a name that the server was given, and none", () => {
    const addresses = ["127.0.0.1:8090", "127.0.0.1", "[::1]:8090", "[::1]", "10.1.2.3:1"];
    const names = ["localhost:8090", "LocalHost", "Admin.Example.com:443"];
    expect([...addresses, ...names].filter((Host) => !isOwn({ Host }))).toEqual([]);
    expect(isOwn({})).toBeTrue();
  });

  test("is not, since it can be pointed to this address: any other name", () => {
    const names = ["evil.example", "evil.example:8090", "localhost.evil.example", "127.0.0.1.evil.example"];
    const lookalikes = ["127.0.0.1x", "localhost.", "0177.0.0.1", "0x7f.1", "evil.localhost"];
    expect([...names, ...lookalikes].filter((Host) => isOwn({ Host }))).toEqual([]);
  });
});

describe("the origin", () => {
  const Host = "127.0.0.1:8090";
  const Cookie = "a=b";
  const Authorization = "Bearer x";
  const isOther = (method: string, fields: Record<string, string>) =>
    isFromOtherOrigin({ method, headers: headersOf(fields) });

  test.each(["GET", "HEAD", "POST", "PATCH", "DELETE"])("%s from this origin, and from others", (method) => {
    const own = { Host, Origin: "http://127.0.0.1:8090", "Sec-Fetch-Site": "same-origin", Cookie };
    expect(isOther(method, own)).toBeFalse();
    // A proxy that terminates TLS changes the scheme only.
    expect(isOther(method, { Host, Origin: "https://127.0.0.1:8090" })).toBeFalse();
    const ports = ["http://127.0.0.1:8091", "http://127.0.0.1", "http://localhost:8090"];
    for (const Origin of [...ports, "http://evil.example", `http://${Host}.evil.example`, "null", "file://"])
      expect(isOther(method, { Host, Origin })).toBeTrue();
    for (const site of ["cross-site", "same-site"])
      expect(isOther(method, { Host, "Sec-Fetch-Site": site, Authorization })).toBeTrue();
    // A sandboxed page, through a proxy that removes Host.
    expect(isOther(method, { Origin: "null", Cookie })).toBeTrue();
  });

  test("an address that a user typed may be read, and so may a page of this origin read", () => {
    for (const site of ["none", "same-origin"])
      expect(isOther("GET", { Host, "Sec-Fetch-Site": site, Cookie })).toBeFalse();
  });

  test("a write with a cookie needs Origin or Sec-Fetch-Site; a program with a token does not", () => {
    expect(isOther("POST", { Host, Cookie })).toBeTrue();
    expect(isOther("GET", { Host, Cookie })).toBeFalse();
    expect(isOther("POST", { Host })).toBeFalse();
    expect(isOther("POST", { Host, Cookie, Authorization })).toBeFalse();
  });
});
