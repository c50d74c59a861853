export function sha256(data: string | Uint8Array, encoding: "hex" | "base64url" = "hex"): string {
  return Bun.SHA256.hash(data, encoding);
}

/** Returns the CRC-32 of ASCII text. */
export function crc32(text: string): number {
  return Bun.hash.crc32(text);
}
