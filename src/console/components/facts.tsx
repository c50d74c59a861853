import { type ComponentChildren, Fragment } from "preact";

/** Names and values of one thing. */
export function Facts({ facts }: { readonly facts: Readonly<Record<string, ComponentChildren>> }) {
  return (
    <dl class="facts">
      {Object.entries(facts).map(([name, value]) => (
        <Fragment key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </Fragment>
      ))}
    </dl>
  );
}
