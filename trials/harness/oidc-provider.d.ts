/* The package has no types. */

declare module "oidc-provider" {
  import type { RequestListener } from "node:http";

  export default class Provider {
    constructor(issuer: string, configuration: object);
    readonly Client: { readonly prototype: { redirectUriAllowed(uri: string): boolean } };
    proxy: boolean;
    callback(): RequestListener;
  }
}
