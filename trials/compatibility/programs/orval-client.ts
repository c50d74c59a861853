import { rawInteger } from "./exact-json.ts";

// The generated code calls JSON.stringify, which has no other way to write a bigint.
// oxlint-disable-next-line no-extend-native
Object.defineProperty(BigInt.prototype, "toJSON", {
  value(this: bigint) {
    return rawInteger(this);
  },
});

/** The last argument of every call. */
export const options = {
  headers: { Authorization: "Bearer pet_live_YOUR_KEY", "Content-Type": "application/json" },
};
