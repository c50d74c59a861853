import { storageOf } from "../../config/config.ts";
import { KEY_OPTIONS, keyId } from "../../config/key-options.ts";
import { STORAGE_OPTIONS } from "../../config/options.ts";
import { quoted, UsageError } from "../../config/usage-error.ts";
import { formatOptionalTime } from "../../contract/formatting.ts";
import { isKeyFailure, type KeyEdit } from "../../domain/key-management.ts";
import { defineCommand } from "../command.ts";
import { failureOf, keyManagement, withKey } from "./key-store.ts";
import { json } from "../output.ts";

const { name, owner, notes, label, access, expires, clear, json: jsonOption } = KEY_OPTIONS;
/** What is not given stays as it is, so these have no default here. */
const EDITS = {
  name,
  owner,
  notes,
  label,
  access: { type: access.type, help: access.help },
  expires: { type: expires.type, help: expires.help },
  clear,
};
const EDIT_FLAGS = Object.keys(EDITS).map((flag) => `--${flag}`);

export const keysUpdate = defineCommand({
  name: "keys update",
  summary: "Rename an API key, or change its owner, notes, labels, access or expiry",
  description:
    "Changes the given fields of a key. --label replaces all labels. --expires counts from now; an expired key works again. Running servers apply the change within a second. A revoked key stays revoked; its name, owner, notes and labels can still be changed.",
  positionals: { ID: keyId },
  options: { ...EDITS, ...STORAGE_OPTIONS, json: jsonOption },
  examples: [
    "petstore keys update 3 --name 'mobile app' --owner ann@example.com",
    "petstore keys update 3 --access read --expires 90d",
    "petstore keys update 3 --expires never --clear notes,labels",
  ],
  async run({ positionals: { ID: id }, values }, context) {
    const edit = editOf(values, context.clock.now());
    if (edit instanceof UsageError) return edit;
    return withKey({ storage: storageOf(values), id }, async (_key, stores) => {
      const updated = await keyManagement(stores, values.env, context).update(id, edit);
      if (isKeyFailure(updated)) return failureOf(updated);
      const { name, owner = null, notes = null, labels, access } = updated;
      const expiresAt = formatOptionalTime(updated.expiresAt);
      const fields = { id, name, owner, notes, labels, access, expiresAt };
      await context.print(values.json ? json(fields) : `Key ${id} ${quoted(name)} is updated.\n`);
      return undefined;
    });
  },
});

interface EditValues {
  readonly name: string | undefined;
  readonly owner: string | undefined;
  readonly notes: string | undefined;
  readonly label: readonly string[] | undefined;
  readonly access: "read" | "write" | undefined;
  readonly expires: number | null | undefined;
  readonly clear: readonly ("owner" | "notes" | "labels")[] | undefined;
}

function editOf(values: EditValues, now: number): KeyEdit | UsageError {
  const { name, owner, notes, label: labels, access, expires, clear = [] } = values;
  const given = { owner, notes, labels };
  const both = clear.find((field) => given[field] !== undefined);
  if (both !== undefined) {
    const flag = both === "labels" ? "label" : both;
    return new UsageError(`--${flag} and --clear ${both} exclude each other; use one of them`);
  }
  const edit = {
    ...(name !== undefined && { name }),
    ...(owner !== undefined && { owner }),
    ...(notes !== undefined && { notes }),
    ...(labels !== undefined && { labels }),
    ...(access !== undefined && { access }),
    ...(expires !== undefined && { expiresAt: expires === null ? null : now + expires }),
    ...(clear.includes("owner") && { owner: null }),
    ...(clear.includes("notes") && { notes: null }),
    ...(clear.includes("labels") && { labels: [] }),
  };
  if (Object.keys(edit).length > 0) return edit;
  return new UsageError(
    `keys update needs a change: ${EDIT_FLAGS.slice(0, -1).join(", ")} or ${EDIT_FLAGS.at(-1)}`,
  );
}
