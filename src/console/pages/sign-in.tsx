import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { goToProvider, loadSession, setSession, signIn } from "../session.ts";
import { consoleState, updateState } from "../state.ts";
import { Brand, ENVIRONMENT } from "../components/layout.tsx";
import { Form } from "../components/forms.tsx";
import { TextField } from "../components/fields.tsx";
import { usePolling } from "../polling.ts";

export function SignInPage() {
  const { provider, urlProblem } = consoleState;
  // Somebody may sign in in another tab.
  usePolling("session", loadSession, { onData: setSession });
  return (
    <Card title="Sign in to Petstore">
      {provider === undefined ? (
        <TokenForm problem={urlProblem} />
      ) : (
        <>
          <Form submitText={`Sign in with ${provider}`} onSubmit={goToProvider} problem={urlProblem} />
          <details>
            <summary>Use a token instead</summary>
            <TokenForm />
          </details>
        </>
      )}
    </Card>
  );
}

const forgetLink = () => updateState({ linkCode: undefined });

/** Asks before the code of a link replaces the session of this browser. */
export function LinkPage({ code }: { readonly code: string }) {
  const name = consoleState.operator?.name;
  return (
    <Card title="Sign in with this link?">
      <p>
        You are signed in as{" "}
        <strong class="wrap">
          <bdi>{name}</bdi>
        </strong>
        . The link signs in the operator for whom it was made, in all tabs of this browser. From then on, the
        audit trail has what you do under that name.
      </p>
      <p class="muted">If somebody has sent you the link, stay signed in.</p>
      <Form
        submitText="Sign in with the link"
        onSubmit={() => signIn({ code }).then(forgetLink)}
        onCancel={forgetLink}
        cancelText="Stay signed in"
      />
    </Card>
  );
}

function Card({ title, children }: { readonly title: string; readonly children: ComponentChildren }) {
  return (
    <main class="sign-in">
      <div class="card">
        <div class="header" data-environment={ENVIRONMENT}>
          <span class="brand">
            <Brand />
          </span>
        </div>
        <section>
          <h1>{title}</h1>
          {children}
        </section>
      </div>
    </main>
  );
}

function TokenForm({ problem }: { readonly problem?: string | undefined }) {
  const [token, setToken] = useState("");
  return (
    <Form
      submitText="Sign in"
      onSubmit={() => signIn({ token: token.trim() })}
      problem={token === "" ? problem : undefined}
    >
      <TextField
        label="Your token"
        hint={
          <>
            What you got as an operator. Without one, <code>petstore admin-url</code> on the server's machine
            prints a URL that signs in once.
          </>
        }
        type="password"
        autocomplete="current-password"
        required
        autofocus
        value={token}
        onInput={setToken}
      />
    </Form>
  );
}
