import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryFolder } from "../trials/harness/cleanup.ts";
import { executable, OPENSSL } from "../trials/harness/programs.ts";
import type { Certificate } from "../trials/harness/server.ts";

/** A certificate authority of our own, as operators of private networks have one. */
export class CertificateAuthority {
  readonly #folder = temporaryFolder("certificates");
  readonly caFile = join(this.#folder, "ca.crt");
  #issued = 0;

  constructor() {
    const subject = ["-subj", "/CN=Petstore test authority"];
    openssl("req", "-x509", ...newKey(join(this.#folder, "ca.key")), "-out", this.caFile, ...subject);
  }

  /** `names` as in the extension: `DNS:localhost,IP:127.0.0.1`. */
  issue(names: string, ...options: string[]): Certificate {
    const folder = join(this.#folder, String(++this.#issued));
    mkdirSync(folder);
    const [certFile, keyFile] = [join(folder, "server.crt"), join(folder, "server.key")];
    const [request, extensions] = [join(folder, "request"), join(folder, "extensions")];
    writeFileSync(extensions, `subjectAltName=${names}\n`);
    openssl("req", ...newKey(keyFile), "-out", request, "-subj", "/CN=petstore");
    const signer = ["-CA", this.caFile, "-CAkey", join(this.#folder, "ca.key"), "-CAcreateserial"];
    openssl("x509", "-req", "-in", request, "-out", certFile, ...signer, "-extfile", extensions, ...options);
    return { certFile, keyFile };
  }
}

/** A certificate with this common name, for localhost, that signs itself. */
export function selfSigned(folder: string, name: string): Certificate {
  mkdirSync(folder, { recursive: true });
  const [certFile, keyFile] = [join(folder, `${name}.crt`), join(folder, `${name}.key`)];
  const subject = ["-subj", `/CN=${name}`, "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"];
  openssl("req", "-x509", "-days", "1", ...newKey(keyFile), "-out", certFile, ...subject);
  return { certFile, keyFile };
}

function openssl(...argv: string[]): void {
  const { exitCode, stderr } = Bun.spawnSync([executable(OPENSSL), ...argv], { stderr: "pipe" });
  if (exitCode !== 0) throw new Error(`openssl ${argv[0]} failed: ${stderr.toString()}`);
}

function newKey(path: string): string[] {
  return ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", path];
}
