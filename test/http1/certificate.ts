import { generateKeyPairSync, sign } from "node:crypto";
import type { TlsCertificate } from "../../src/http1/index.ts";

/** An element of DER (X.690): the tag, the length and the contents. */
function element(tag: number, ...contents: readonly Uint8Array[]): Buffer {
  const content = Buffer.concat(contents);
  const { length } = content;
  const more = length < 0x80 ? [] : length < 0x100 ? [0x81] : [0x82, length >> 8];
  return Buffer.concat([Buffer.from([tag, ...more, length & 0xff]), content]);
}

const sequence = (...contents: readonly Uint8Array[]) => element(0x30, ...contents);
/** Such as 261115120000Z. */
const utcTime = (at: Date) =>
  element(0x17, Buffer.from(`${at.toISOString().slice(2, 19).replaceAll(/\D/g, "")}Z`));
const COMMON_NAME = Buffer.from("0603550403", "hex");
const ECDSA_WITH_SHA256 = sequence(Buffer.from("06082a8648ce3d040302", "hex"));

function pem(label: string, der: Uint8Array): string {
  return `-----BEGIN ${label}-----\n${Buffer.from(der).toString("base64")}\n-----END ${label}-----\n`;
}

interface Validity {
  readonly validFrom?: Date;
  readonly validTo?: Date;
}

/** A new key, and a certificate that it has signed itself (RFC 5280, 4.1), without the program `openssl`. */
export function certificateOf(
  commonName: string,
  { validFrom = new Date("2020-01-01T00:00:00Z"), validTo = new Date("2049-12-31T23:59:59Z") }: Validity = {},
): TlsCertificate {
  const { publicKey, privateKey } = generateKeyPairSync("ec", { namedCurve: "prime256v1" });
  const name = sequence(element(0x31, sequence(COMMON_NAME, element(0x0c, Buffer.from(commonName)))));
  const validity = sequence(utcTime(validFrom), utcTime(validTo));
  const spki = publicKey.export({ type: "spki", format: "der" });
  const content = sequence(element(0x02, Buffer.of(1)), ECDSA_WITH_SHA256, name, validity, name, spki);
  const signature = element(0x03, Buffer.of(0), sign("sha256", content, privateKey));
  const cert = pem("CERTIFICATE", sequence(content, ECDSA_WITH_SHA256, signature));
  return { cert, key: String(privateKey.export({ type: "pkcs8", format: "pem" })) };
}
