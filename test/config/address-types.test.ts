import { describe, expect, test } from "bun:test";
import * as fc from "fast-check";
import { network } from "../../src/config/address-types.ts";
import { formatIpNetwork } from "../../src/config/network.ts";
import { parseConfig, usageError } from "./parsing.ts";

describe("--public-url", () => {
  test.each([
    ["https://api.example.com", "https://api.example.com/v1"],
    ["https://api.example.com/", "https://api.example.com/v1"],
    ["https://api.example.com/v1", "https://api.example.com/v1"],
    ["https://api.example.com/v1/", "https://api.example.com/v1"],
    ["https://api.example.com:443/pets-api", "https://api.example.com/pets-api/v1"],
    ["HTTP://Example.COM:8080/a/v1//", "http://example.com:8080/a/v1"],
    ["http://[2001:DB8::1]:80/v1", "http://[2001:db8::1]/v1"],
  ])("%s becomes %s", (text, url) => {
    expect(parseConfig({ "public-url": [text] }).publicUrl).toBe(url);
  });

  test.each([
    "api.example.com",
    "ftp://example.com",
    "https://",
    "https:/example.com",
    "https://user:secret@example.com",
    "https://user@example.com",
    "https://example.com/v1?x=1",
    "https://example.com/v1?",
    "https://example.com/v1#top",
    "https://exa mple.com",
    "https://example.com/a\\b",
    "https://example.com:99999",
  ])("%s is rejected", (text) => {
    expect(usageError({ "public-url": [text] })).toContain(
      "; it must be an http:// or https:// URL without user, query or fragment, such as https://api.example.com/v1",
    );
  });
});

describe("--host", () => {
  test.each("127.0.0.1 0.0.0.0 :: ::1 localhost my-host.example.com fe80::1 fe80::1%eth0".split(" "))(
    "%s is accepted",
    (host) => {
      expect(parseConfig({ host: [host] }).host).toBe(host);
      // IPv6 may be in brackets, as in a URL.
      if (host.includes("::")) expect(parseConfig({ host: [`[${host}]`] }).host).toBe(host);
    },
  );

  test.each([
    "",
    "127.0.0.1:80",
    "1.2.3.999",
    "10.1",
    "a b",
    "-a",
    "http://x",
    "[127.0.0.1]",
    "x".repeat(64),
  ])("%p is rejected", (host) => {
    expect(usageError({ host: [host] })).toStartWith("--host is ");
  });
});

describe("--database-url and --limits-url", () => {
  test.each([
    "postgres://u:p%40ss%25@db.example:5432/pets",
    "postgresql://h",
    "postgres://u@[::1]/my%20pets",
    "postgres://h/d?sslmode=verify-full&sslrootcert=/etc/ca.pem",
    "postgres://u:a,b@db1,db2:5433,[::1]:5434/d?sslmode=verify-full",
  ])("--database-url %s is accepted", (url) => {
    expect(parseConfig({ "database-url": [url] }).databaseUrl).toBe(url);
  });

  test.each(["redis://h", "redis://h/", "rediss://u:p%2C@h:6380/12", "redis://[::1]:6379/0"])(
    "--limits-url %s is accepted",
    (url) => {
      expect(parseConfig({ "limits-url": [url] }).limitsUrls).toEqual([url]);
    },
  );

  test.each([
    ["database-url", "mysql://u:s3cret@h/d"],
    ["database-url", "postgres://u:s3cret%zz@h/d"],
    ["database-url", "postgres://s3cret%@h/d"],
    ["database-url", "postgres://u:s3cret@h/%ff"],
    ["database-url", "postgres://u:s3cret@h/a/b"],
    ["database-url", "postgres://u:s3cret@h /d"],
    ["database-url", "postgres://u:s3cret@h,/d"],
    ["database-url", "postgres://u:s3cret@h:5432,i:x/d"],
    ["limits-url", "redis://:s3cret%zz@h"],
    ["limits-url", "redis://s3cret%e4@h"],
    ["limits-url", "redis://:s3cret@h/abc"],
    ["limits-url", "redis://:s3cret@h/0/1"],
    ["limits-url", "redis://:s3cret@h/-1"],
    ["limits-url", "redis://:s3cret@h/%30"],
    ["limits-url", "redis://a,redis://:s3cret@"],
    ["database-url", "postgres://u:s3cret@h/d?sslmode=verify"],
    ["limits-url", "redis://:s3cret@h?tls=true"],
  ])("--%s %s is rejected, and the message does not repeat it", (flag, url) => {
    const message = usageError({ [flag]: [url] });
    expect(message).toStartWith(`--${flag} is not valid; it must be a URL such as `);
    expect(message).not.toContain("s3cret");
  });

  test.each([
    ["database-url", "postgres://u:100%@h/d", "write % as %25 in a user, password or database"],
    ["limits-url", "redis://a,redis://:100%zz@h", "write % as %25 in a user, password or database"],
    [
      "database-url",
      "postgres://h/d?sslmode=verify",
      "sslmode must be disable, allow, prefer, require, verify-ca or verify-full",
    ],
    ["limits-url", "redis://h?tls=true", "it has no parameters"],
  ])("--%s %s: the message explains what is wrong", (flag, url, remark) => {
    expect(usageError({ [flag]: [url] })).toEndWith(`(${remark})`);
    expect(usageError({ [flag]: ["http://h"] })).not.toContain("%25");
  });
});

describe("--cors-origin", () => {
  test.each([
    ["https://app.example.com", "https://app.example.com"],
    ["https://App.Example.com:443/", "https://app.example.com"],
    ["http://localhost:3000", "http://localhost:3000"],
    ["http://[::1]:3000", "http://[::1]:3000"],
    ["https://bücher.example", "https://xn--bcher-kva.example"],
  ])("%s is the origin %s, as browsers write it", (text, origin) => {
    expect(parseConfig({ "cors-origin": [text] }).corsOrigins).toEqual([origin]);
  });

  test("there is none by default, and there can be several", () => {
    expect(parseConfig({}).corsOrigins).toEqual([]);
    expect(parseConfig({ "cors-origin": ["http://a", "http://b,http://c"] }).corsOrigins).toHaveLength(3);
  });

  test.each("* null https://*.example.com app.example.com ftp://a https://u:p@a file:///a".split(" "))(
    "%s is rejected",
    (text) => {
      expect(usageError({ "cors-origin": [text] })).toContain(
        "must be the origin of a page such as https://",
      );
    },
  );

  test("a path is rejected with a suggestion", () => {
    expect(usageError({ "cors-origin": ["https://a.example/x"] })).toEndWith(
      "(did you mean https://a.example?)",
    );
  });
});

describe("--trust-proxy", () => {
  test.each([
    ["10.0.0.0/8", "10.0.0.0/8"],
    ["192.0.2.7", "192.0.2.7/32"],
    ["0.0.0.0/0", "0.0.0.0/0"],
    ["fd00::/8", "fd00::/8"],
    ["2001:DB8::1", "2001:db8::1/128"],
    ["::/0", "::/0"],
    ["::ffff:10.0.0.0/104", "10.0.0.0/8"],
    ["::ffff:10.1.2.3", "10.1.2.3/32"],
    ["::ffff:a00:0/104", "10.0.0.0/8"],
    ["::10.0.0.0/104", "::a00:0/104"],
  ])("%s is the network %s", (text, cidr) => {
    const parsed = network.parse(text);
    expect(parsed && formatIpNetwork(parsed)).toBe(cidr);
  });

  test.each([
    ..."10.0.0.0/33 10.0.0.0/ 10.0.0.0/08 10.0.0.0/+8 10.0.0/8 010.0.0.0/8 0x0a.0.0.0/8 167772160".split(" "),
    ..."10.0.0.0/8/8 10.0.0.256 fd00::/129 fe80::1%eth0 ::ffff:010.0.0.0/104 fd00:::1 [::1] localhost *".split(
      " ",
    ),
    "",
  ])("%p is rejected", (text) => {
    expect(network.parse(text)).toBeUndefined();
  });

  test.each([
    ["10.1.2.3/8", "10.0.0.0/8 or 10.1.2.3/32"],
    ["2001:db8::1/32", "2001:db8::/32 or 2001:db8::1/128"],
  ])("%s has bits after its prefix: it is rejected with two suggestions", (text, suggestions) => {
    expect(usageError({ "trust-proxy": [text] })).toEndWith(`(did you mean ${suggestions}?)`);
  });

  test("both suggestions are always valid", () => {
    const ipv4 = fc.tuple(fc.ipV4(), fc.integer({ min: 0, max: 32 }));
    const ipv6 = fc.tuple(fc.ipV6(), fc.integer({ min: 0, max: 128 }));
    fc.assert(
      fc.property(fc.oneof(ipv4, ipv6), ([address, prefixLength]) => {
        const suggestions = network.hint?.(`${address}/${prefixLength}`)?.split(" or ") ?? [];
        expect(suggestions).toHaveLength(2);
        for (const suggestion of suggestions) {
          const parsed = network.parse(suggestion);
          expect(parsed && formatIpNetwork(parsed)).toBe(suggestion);
        }
      }),
    );
  });
});
