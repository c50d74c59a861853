import { describe, expect, test } from "bun:test";
import { HeaderFields } from "../../src/http1/request-head.ts";
import { isFromOtherOrigin, isOwnHost } from "../../src/operator/request-origin.ts";

function headersOf(fields: Readonly<Record<string, string>>): HeaderFields {
  const headers = HeaderFields.parse(
    Object.entries(fields)
      .map(([name, value]) => `${name}: ${value}\r\n`)
      .join(""),
  );
  if (typeof headers === "number") throw new Error(`${headers}`);
  return headers;
}

const OWN = { Host: "127.0.0.1:8090" };

describe("the host", () => {
  test.each([
    "127.0.0.1:8090",
    "127.0.0.1",
    "[::1]:8090",
    "[::1]",
    "localhost:8090",
    "LocalHost",
    "10.1.2.3:1",
  ])("%s is an own one", (Host) => {
    expect(isOwnHost({ headers: headersOf({ Host }) }, [])).toBeTrue();
  });

  test.each([
    "evil.example",
    "evil.example:8090",
    "localhost.evil.example",
    "127.0.0.1.evil.example",
    "127.0.0.1x",
    "localhost.",
    "0177.0.0.1",
    "0x7f.1",
    "evil.localhost",
  ])("%s is not: a name can be pointed to this address", (Host) => {
    expect(isOwnHost({ headers: headersOf({ Host }) }, ["admin.example.com"])).toBeFalse();
  });

  test("a name that the server was given is an own one, in any case", () => {
    expect(
      isOwnHost({ headers: headersOf({ Host: "Admin.Example.com:443" }) }, ["admin.example.com"]),
    ).toBeTrue();
  });

  test("a request without Host is not from a browser", () => {
    expect(isOwnHost({ headers: headersOf({}) }, [])).toBeTrue();
  });
});

describe("the origin", () => {
  const isOther = (method: string, fields: Record<string, string>) =>
    isFromOtherOrigin({ method, headers: headersOf({ ...OWN, ...fields }) });

  test("a sandboxed page is another origin, also through a proxy that removes Host", () => {
    const headers = headersOf({ Origin: "null", Cookie: "a=b" });
    expect(isFromOtherOrigin({ method: "POST", headers })).toBeTrue();
  });

  test("a page of this origin may read and write", () => {
    const own = { Origin: "http://127.0.0.1:8090", "Sec-Fetch-Site": "same-origin", Cookie: "a=b" };
    expect(["GET", "POST", "PATCH", "DELETE"].map((method) => isOther(method, own))).toEqual(
      Array(4).fill(false),
    );
    expect(isOther("GET", { "Sec-Fetch-Site": "same-origin", Cookie: "a=b" })).toBeFalse();
  });

  test("a proxy that terminates TLS changes the scheme only", () => {
    expect(isOther("POST", { Origin: "https://127.0.0.1:8090" })).toBeFalse();
  });

  test.each(["GET", "HEAD", "POST", "PATCH", "DELETE"])("%s from another origin is rejected", (method) => {
    for (const Origin of [
      "http://127.0.0.1:8091",
      "http://127.0.0.1",
      "http://localhost:8090",
      "http://evil.example",
      "http://127.0.0.1:8090.evil.example",
      "null",
      "file://",
    ]) {
      expect(isOther(method, { Origin })).toBeTrue();
    }
    for (const site of ["cross-site", "same-site"]) {
      expect(isOther(method, { "Sec-Fetch-Site": site })).toBeTrue();
      expect(isOther(method, { "Sec-Fetch-Site": site, Authorization: "Bearer x" })).toBeTrue();
    }
  });

  test("an address that a user typed may be read", () => {
    expect(isOther("GET", { "Sec-Fetch-Site": "none", Cookie: "a=b" })).toBeFalse();
  });

  test("a write with a cookie needs Origin or Sec-Fetch-Site; a program with a token does not", () => {
    expect(isOther("POST", { Cookie: "a=b" })).toBeTrue();
    expect(isOther("GET", { Cookie: "a=b" })).toBeFalse();
    expect(isOther("POST", {})).toBeFalse();
    expect(isOther("POST", { Cookie: "a=b", Authorization: "Bearer x" })).toBeFalse();
  });
});
