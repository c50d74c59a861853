import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { TlsFiles } from "../../src/config/tls.ts";

/** A certificate with this common name, for localhost. */
export function selfSigned(directory: string, name: string): TlsFiles {
  mkdirSync(directory, { recursive: true });
  const [certFile, keyFile] = [join(directory, `${name}.crt`), join(directory, `${name}.key`)];
  const key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", keyFile];
  const cert = [
    "-subj",
    `/CN=${name}`,
    "-addext",
    "subjectAltName=DNS:localhost,IP:127.0.0.1",
    "-out",
    certFile,
  ];
  const { exitCode, stderr } = Bun.spawnSync(["openssl", "req", "-x509", "-days", "1", ...key, ...cert]);
  if (exitCode !== 0) throw new Error(stderr.toString());
  return { certFile, keyFile };
}
