/** `hash` of node:crypto does the same; loading it would take 9 ms of every start. */
export function sha256(data: string | Uint8Array, encoding: "hex" | "base64url" = "hex"): string {
  return Bun.SHA256.hash(data, encoding);
}
