import type { AuditAction } from "../src/domain/audit.ts";

export const AUDIT_MEANINGS: Readonly<Record<AuditAction, string>> = {
  "key.created": "A key was created.",
  "key.updated": "Fields of a key were changed.",
  "key.rolled": "A key got a new secret.",
  "key.revoked": "A key was revoked.",
  "key.banned": "A server banned a key.",
  "key.unbanned": "An operator ended the ban of a key, or reset its strikes.",
  "pet.updated": "An operator corrected a pet.",
  "pet.deleted": "An operator deleted a pet.",
  "order.updated": "An operator completed or cancelled an order.",
  "data.imported": "Pets or orders were imported from a file.",
  "data.exported": "API keys were exported with the hashes of their secrets.",
  "data.restored": "The databases were restored from a backup.",
  "data.copied": "All data were copied here from another database.",
  "admin.signed-in": "Somebody signed in to the console.",
  "admin.sign-in-failed": "Somebody tried to sign in with a wrong token.",
  "admin.signed-out": "Somebody signed out of the console.",
  "admin.token-rolled": "The admin token was replaced.",
};
