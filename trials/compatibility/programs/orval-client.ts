import { rawInteger } from "./exact-json.ts";

// The generated code calls JSON.stringify.
// oxlint-disable-next-line no-extend-native
Object.defineProperty(BigInt.prototype, "toJSON", {
  value(this: bigint) {
    return rawInteger(this);
  },
});

export const options = {
  headers: {
    Authorization: `Bearer ${process.env["PETSTORE_KEY"]}`,
    "Content-Type": "application/json",
  },
};
