import { useState } from "preact/hooks";
import { call } from "../admin-api.ts";
import { navigate } from "../router.ts";
import { Dialog } from "./dialog.tsx";
import { Field, Problem, useAction } from "./form.tsx";

/** Never in the URL: a secret belongs into no history. */
const WHOLE_SECRET = /^pet_(?:live|test)_[0-9A-Za-z]{36}$/;

/** Somebody who pastes a secret into the search wants its key. */
export function openKeyOfSecret(text: string): boolean {
  if (!WHOLE_SECRET.test(text)) return false;
  call("findKey", { body: { secret: text } }).then(
    ({ id }) => navigate(`/keys/${id}`),
    () => navigate("/keys?search=no%20key%20has%20this%20secret"),
  );
  return true;
}

export function FindKeyDialog({ onClose }: { readonly onClose: () => void }) {
  const [secret, setSecret] = useState("");
  const { isRunning, problem, run } = useAction();
  async function find() {
    const { id } = await call("findKey", { body: { secret: secret.trim() } });
    onClose();
    navigate(`/keys/${id}`);
  }
  return (
    <Dialog title="Find a key by its secret" onClose={onClose}>
      <form
        class="form"
        onSubmit={(event) => {
          event.preventDefault();
          void run(find);
        }}
      >
        <Field label="Secret" hint="It is compared with the stored hashes. It is neither stored nor logged.">
          {(attributes) => (
            <input
              {...attributes}
              type="password"
              autocomplete="off"
              value={secret}
              onInput={(event) => setSecret(event.currentTarget.value)}
            />
          )}
        </Field>
        <Problem text={problem} />
        <div class="actions">
          <button type="button" onClick={onClose}>
            Cancel
          </button>
          <button type="submit" class="primary" disabled={secret.trim() === "" || isRunning}>
            Find
          </button>
        </div>
      </form>
    </Dialog>
  );
}
