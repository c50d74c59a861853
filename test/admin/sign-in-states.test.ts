import { expect, test } from "bun:test";
import type { Environment } from "../../src/domain/environments.ts";
import { SignInStates } from "../../src/operator/sign-in/sign-in-states.ts";
import { TestClock } from "../test-clock.ts";

const clock = new TestClock();
const statesOf = (environment: Environment, secret = "secret of the client") =>
  new SignInStates({ secret: () => secret, environment, clock });

test("a state is of the environment and the secret with which it was made, and nobody can change it", () => {
  const states = statesOf("production");
  const state = states.create();
  expect(state).toMatch(/^[\w-]{22}\.[0-9a-z]+\.[\w-]{43}$/);
  const [random = "", time = "", mac = ""] = state.split(".");
  const later = (Number.parseInt(time, 36) + 1).toString(36);
  const changed = [`${random}.${later}.${mac}`, `${random}.${time}.${"a".repeat(43)}`, `${random}.${time}.`];
  for (const wrong of [...changed, `${state}a`, state.slice(1), "", "a", `${"é".repeat(22)}.${time}.${mac}`])
    expect(states.take(wrong)).toBeFalse();
  expect(statesOf("staging").take(state)).toBeFalse();
  expect(statesOf("production", "another secret").take(state)).toBeFalse();
  expect(statesOf("production").take(state)).toBeTrue();
  expect([states.take(state), states.take(state)]).toEqual([true, false]);
});

test("a state is valid for ten minutes, and clocks may differ by half a minute", () => {
  const states = statesOf("production");
  const [first, second] = [states.create(), states.create()];
  clock.step(-30_001);
  expect(states.take(first)).toBeFalse();
  clock.step(1);
  expect(states.take(first)).toBeTrue();
  clock.step(30_000 + 599_999);
  // The steady clock does not follow: the state is still known.
  expect(states.take(first)).toBeFalse();
  expect(states.take(second)).toBeTrue();
  clock.step(1);
  expect(states.take(states.create())).toBeTrue();
  expect(statesOf("production").take(second)).toBeFalse();
});

test("at most 20,000 states that came back are remembered, and forgotten when they are no longer valid", () => {
  const states = statesOf("production");
  for (let i = 0; i < 20_000; i++) expect(states.take(states.create())).toBeTrue();
  const one = states.create();
  expect(states.take(one)).toBeFalse();
  clock.advance(629_999);
  expect(states.take(states.create())).toBeFalse();
  clock.advance(1);
  expect(states.take(states.create())).toBeTrue();
});
