import { useState } from "preact/hooks";
import { call } from "../admin-api.ts";
import { type KeyFormValues, NEW_KEY, newKeyOf } from "../key-form-values.ts";
import { navigate } from "../router.ts";
import type { Session } from "../session.ts";
import { KeyForm } from "./key-form.tsx";
import { SecretDialog } from "./secret-dialog.tsx";

/** The form of a new key, then its secret, then its page. */
export function KeyCreation({ session }: { readonly session: Session }) {
  const [created, setCreated] = useState<Awaited<ReturnType<typeof call<"createKey">>>>();
  async function create(values: KeyFormValues) {
    setCreated(await call("createKey", { body: newKeyOf(values) }));
  }
  return (
    <>
      <KeyForm initial={NEW_KEY} submitText="Create key" onSubmit={create} />
      {created && (
        <SecretDialog
          name={created.key.name}
          secret={created.secret}
          publicUrl={session.server?.publicUrl ?? ""}
          onClose={() => navigate(`/keys/${created.key.id}`)}
        />
      )}
    </>
  );
}
