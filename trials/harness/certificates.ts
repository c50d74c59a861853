import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryDirectory } from "./cleanup.ts";
import type { MachineClock } from "./machine-clock.ts";
import { executable, OPENSSL } from "./programs.ts";
import type { Certificate } from "./server.ts";

const YEARS = "3650";

/** A private certificate authority, as operators of private networks have. */
export class CertificateAuthority {
  readonly #directory = temporaryDirectory("certificates");
  readonly caFile = join(this.#directory, "ca.crt");
  #issued = 0;

  /** Certificates are valid from the current time of the clock. */
  constructor(private readonly clock?: MachineClock) {
    const subject = ["-subj", "/CN=Petstore test authority", "-days", YEARS];
    const key = newKey(join(this.#directory, "ca.key"));
    this.#openssl("req", "-x509", ...key, "-out", this.caFile, ...subject);
  }

  /** Issues a certificate. `names` has the format of the extension: `DNS:localhost,IP:127.0.0.1`. */
  issue(names: string, ...options: string[]): Certificate {
    const directory = join(this.#directory, String(++this.#issued));
    mkdirSync(directory);
    const [certFile, keyFile] = [join(directory, "server.crt"), join(directory, "server.key")];
    const [request, extensions] = [join(directory, "request"), join(directory, "extensions")];
    writeFileSync(extensions, `subjectAltName=${names}\n`);
    this.#openssl("req", ...newKey(keyFile), "-out", request, "-subj", "/CN=petstore");
    const signer = ["-CA", this.caFile, "-CAkey", join(this.#directory, "ca.key"), "-CAcreateserial"];
    const validity = ["-days", YEARS, ...options];
    this.#openssl(
      "x509",
      "-req",
      "-in",
      request,
      "-out",
      certFile,
      ...signer,
      "-extfile",
      extensions,
      ...validity,
    );
    return { certFile, keyFile };
  }

  #openssl(...argv: string[]): void {
    openssl(argv, this.clock?.under);
  }
}

/** Makes a self-signed certificate with this common name, for localhost. */
export function selfSigned(directory: string, name: string): Certificate {
  mkdirSync(directory, { recursive: true });
  const [certFile, keyFile] = [join(directory, `${name}.crt`), join(directory, `${name}.key`)];
  const subject = ["-subj", `/CN=${name}`, "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"];
  openssl(["req", "-x509", "-days", "1", ...newKey(keyFile), "-out", certFile, ...subject]);
  return { certFile, keyFile };
}

function openssl(argv: readonly string[], under: readonly string[] = []): void {
  const { exitCode, stderr } = Bun.spawnSync([...under, executable(OPENSSL), ...argv], { stderr: "pipe" });
  if (exitCode !== 0) throw new Error(`openssl ${argv[0]} failed: ${stderr.toString()}`);
}

function newKey(path: string): string[] {
  return ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", path];
}
