import { expect, test } from "bun:test";
import { execFile } from "node:child_process";
import { HttpServer } from "../../../src/http1/index.ts";
import { executable, OPENSSL } from "../../../trials/harness/programs.ts";
import { certificateOf } from "../../http1/certificate.ts";
import { echoHandler } from "../../http1/echo-server.ts";

test("a server with TLS has forward secrecy and authenticated encryption with TLS 1.2, and no older version", async () => {
  const server = new HttpServer({
    host: "127.0.0.1",
    port: 0,
    createHandler: () => echoHandler,
    tls: certificateOf("petstore"),
    onError: () => {},
  });
  const cipherOf = (cipher: string, version = "-tls1_2") => {
    const offer = ["-connect", `127.0.0.1:${server.port}`, version, "-cipher", `${cipher}:@SECLEVEL=0`];
    const { promise, resolve } = Promise.withResolvers<string | undefined>();
    execFile(executable(OPENSSL), ["s_client", ...offer], (_, output) =>
      resolve(/Cipher is (\S+)/.exec(output)?.[1]),
    ).stdin?.end();
    return promise;
  };
  const weak = ["ECDHE-ECDSA-AES128-SHA", "ECDHE-ECDSA-AES256-SHA384", "ECDHE-ECDSA-AES128-CCM"];
  for (const cipher of weak) expect(await cipherOf(cipher)).toBe("(NONE)");
  for (const cipher of ["ECDHE-ECDSA-AES128-GCM-SHA256", "ECDHE-ECDSA-CHACHA20-POLY1305"])
    expect(await cipherOf(cipher)).toBe(cipher);
  expect(await cipherOf("ALL", "-tls1_1")).toBe("(NONE)");
  await server.close(0);
});
