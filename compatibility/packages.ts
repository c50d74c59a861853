/** The programs that `npm run generators` installs. */
export const GENERATOR_PACKAGES = {
  "openapi-typescript": "7.13.0",
  "openapi-fetch": "0.17.0",
  "@hey-api/openapi-ts": "0.99.0",
  orval: "8.38.0",
  "@redocly/cli": "2.73.0",
  "@stoplight/spectral-cli": "6.16.3",
  "@apidevtools/swagger-parser": "13.1.0",
  typescript: "5.9.3",
  "@types/node": "24.10.1",
} as const;

/** The programs that `npm run check:package` installs. */
export const PACKAGE_CHECK_PACKAGES = {
  publint: "0.3.25",
  "@arethetypeswrong/cli": "0.18.5",
  deno: "2.9.5",
} as const;
