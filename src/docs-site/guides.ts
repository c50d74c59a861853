import { DOCS_PATH } from "../domain/constants.ts";

/** The guides in the order of the sidebar, each with the file of docs/ that it comes from. */
export const GUIDES = {
  quickstart: DOCS_PATH,
  api: `${DOCS_PATH}/api`,
  authentication: `${DOCS_PATH}/authentication`,
  pagination: `${DOCS_PATH}/pagination`,
  "rate-limits": `${DOCS_PATH}/rate-limits`,
  idempotency: `${DOCS_PATH}/idempotency`,
  errors: `${DOCS_PATH}/errors`,
  integers: `${DOCS_PATH}/integers`,
  deprecation: `${DOCS_PATH}/deprecation`,
  "client-library": `${DOCS_PATH}/client-library`,
  changelog: `${DOCS_PATH}/changelog`,
} as const;

export type GuideName = keyof typeof GUIDES;

export function isGuide(name: string): name is GuideName {
  return Object.hasOwn(GUIDES, name);
}

export const REFERENCE_PATH = `${DOCS_PATH}/reference`;
export const SCHEMAS_PATH = `${REFERENCE_PATH}/schemas`;
export const ERROR_CODES_PATH = `${REFERENCE_PATH}/errors`;

export function operationPath(operationId: string): string {
  return `${REFERENCE_PATH}/${operationId}`;
}
