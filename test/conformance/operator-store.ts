import { expect } from "bun:test";
import type { Rejection } from "../../src/api/errors.ts";
import { toNewSecret } from "../../src/domain/secrets.ts";
import type { NewAuditEntry } from "../../src/domain/audit.ts";
import {
  type NewOperator,
  NO_TOKEN,
  type Operator,
  type OperatorChange,
  operatorState,
} from "../../src/domain/operators.ts";
import type { OperatorStore } from "../../src/domain/ports/operators.ts";
import { AT, rejectionCode, type TestCase } from "./store-fixture.ts";

const HOUR = 3_600_000;
const by = { actor: { kind: "console", operator: "root" }, at: AT } as const;
const ANN: NewOperator = { name: "ann", role: "admin" };
const token = (text: string) => toNewSecret(`pet_admin_${text.padEnd(43, "x")}`);
const hashOf = (text: string) => token(text).hash;
const SIGNED_IN: NewAuditEntry = { ...by, action: "admin.signed-in" };

function operatorIn(result: Operator | Rejection | undefined): Operator {
  if (result === undefined || "code" in result) throw new Error(`rejected: ${result?.code}`);
  return result;
}

const create = async (operators: OperatorStore, name: string, role: Operator["role"] = "admin") =>
  operatorIn(await operators.createOperator({ name, role }, token(name), by));

/** A session that the token with the text `by` has made. */
const session = (text: string, operatorId: number, by: string, createdAt = AT) => ({
  cookieHash: hashOf(`cookie-${text}`),
  secretHash: hashOf(`secret-${text}`),
  operatorId,
  tokenHash: hashOf(by),
  createdAt,
  endsAt: createdAt + 12 * HOUR,
});

/** What every OperatorStore does, on whatever database. */
export function operatorStoreConformance(test: TestCase): void {
  test("createOperator: every process sees the operator and finds the token, and the audit trail names them", async (opened) => {
    const { operators, audit, another } = opened;
    expect(await operators.listOperators()).toEqual([]);
    const ann = await create(operators, "ann");
    const { hint } = token("ann");
    expect(ann).toEqual({ id: 1, ...ANN, hint, createdAt: AT, issuedAt: AT });
    const other = (await another()).operators;
    expect(await other.listOperators()).toStrictEqual([ann]);
    expect([...(await other.readAccess()).tokens]).toStrictEqual([[hashOf("ann"), { operator: ann }]]);
    const target = { kind: "operator", id: 1n } as const;
    const { items } = await audit.listAudit({ target, limit: 9 });
    const after = { name: "ann", role: "admin", hint };
    expect(items).toStrictEqual([{ id: 1n, ...by, action: "operator.created", target, after }]);
  });

  test("importOperator: creates the operator or replaces their token, and no token comes back to life", async (opened) => {
    const { operators, audit, another } = opened;
    const other = (await another()).operators;
    const METRICS: NewOperator = { name: "metrics", role: "metrics" };
    const give = (to: OperatorStore, text: string) => to.importOperator(METRICS, token(text), by);
    const valid = async () => [...(await operators.readAccess()).tokens.keys()];
    // Servers that start together have the same file.
    await Promise.all([operators, other, operators, other].map((each) => give(each, "first")));
    expect(await valid()).toEqual([hashOf("first")]);
    const { id } = operatorIn((await operators.listOperators())[0]);
    await operators.createSession(session("one", id, "first"), SIGNED_IN);
    await Promise.all([operators, other].map((each) => give(each, "second")));
    expect(await valid()).toEqual([hashOf("second")]);
    expect((await operators.readAccess()).sessions.size).toBe(0);
    expect(await give(operators, "second")).toBeUndefined();
    const used = (name: string) => ({
      code: "invalid_token",
      message: `Operator ${name} has or had the token. Make another one.`,
    });
    expect(await give(operators, "first")).toMatchObject(used("metrics"));
    await create(operators, "ann");
    expect(await give(operators, "ann")).toMatchObject(used("ann"));
    expect((await valid()).toSorted()).toEqual([hashOf("second"), hashOf("ann")].toSorted());
    expect(await operators.listOperators()).toMatchObject([METRICS, ANN]);
    await operators.revokeOperator(id, by);
    for (const text of ["second", "third"])
      expect(await give(operators, text)).toMatchObject({ code: "operator_not_active" });
    expect(await valid()).toEqual([hashOf("ann")]);
    // Nobody's role changes.
    const { name } = await create(operators, "viewer", "viewer");
    const give4 = (role: Operator["role"]) => operators.importOperator({ name, role }, token("fourth"), by);
    expect(await give4("metrics")).toMatchObject({ code: "operator_exists" });
    expect(await give4("admin")).toMatchObject({ name, role: "viewer", hint: token("fourth").hint });
    const { items } = await audit.listAudit({ limit: 9 });
    expect(items.map(({ action }) => action)).toEqual([
      "operator.rotated",
      "operator.created",
      "operator.revoked",
      "operator.created",
      "operator.rotated",
      "admin.signed-in",
      "operator.created",
    ]);
  });

  test("admitOperator: a person keeps sessions while active; a new role is audited, and another person starts anew", async (opened) => {
    const { operators, audit, another } = opened;
    const other = (await another()).operators;
    const person = {
      name: "eva@example.com",
      role: "admin",
      subject: "issuer 1",
      expiresAt: AT + HOUR,
    } as const;
    const admit = async (text: string, change: object = {}, at = AT) => {
      const nobodys = { ...token(text), hint: NO_TOKEN };
      const admitted = await other.admitOperator({ ...person, ...change }, nobodys, { ...by, at });
      if ("code" in admitted) throw new Error(admitted.message);
      return admitted;
    };
    // One of several sign-ins at the same time creates the operator.
    const [first, again] = await Promise.all([admit("one"), admit("two")]);
    expect(again).toEqual(first);
    const { id } = first.operator;
    expect(first.operator).toMatchObject(person);
    expect(
      await operators.createSession({ ...session("a", id, "one"), tokenHash: first.tokenHash }, SIGNED_IN),
    ).toBe(true);
    const lower = await admit("three", { role: "viewer", expiresAt: AT + 2 * HOUR });
    expect(lower).toMatchObject({
      tokenHash: first.tokenHash,
      operator: { id, role: "viewer", expiresAt: AT + 2 * HOUR },
    });
    expect((await operators.readAccess()).sessions.size).toBe(1);
    const updated = async () => (await audit.listAudit({ action: "operator.updated", limit: 9 })).items;
    expect(await updated()).toMatchObject([
      { before: { role: "admin" }, after: { name: person.name, role: "viewer" } },
    ]);
    // Nobody but the provider grants more. Less takes effect at once.
    for (const change of [{ role: "support" }, { expiresAt: null }, { expiresAt: AT + 3 * HOUR }] as const)
      expect(rejectionCode(await operators.updateOperator(id, change, by))).toBe("operator_of_provider");
    expect(await operators.updateOperator(id, { expiresAt: AT + HOUR }, by)).toMatchObject({
      role: "viewer",
    });
    // Somebody else has the address now.
    expect(await admit("four", { subject: "issuer 2" })).toMatchObject({
      tokenHash: hashOf("four"),
      operator: { id, subject: "issuer 2" },
    });
    expect((await operators.readAccess()).sessions.size).toBe(0);
    expect(await updated()).toHaveLength(3);
    // The sign-in before has expired.
    const late = { expiresAt: AT + 9 * HOUR, subject: "issuer 2" };
    expect((await admit("five", late, AT + 2 * HOUR)).tokenHash).toBe(hashOf("five"));
    expect((await admit("six", late, AT + 3 * HOUR)).tokenHash).toBe(hashOf("five"));
    expect([...(await operators.readAccess()).tokens.keys()]).toEqual([hashOf("five")]);
    await create(operators, "ann");
    await operators.revokeOperator(id, by);
    for (const change of [{}, { name: "new@example.com", subject: "issuer 2" }])
      expect(await operators.admitOperator({ ...person, ...change }, token("seven"), by)).toMatchObject({
        code: "operator_not_active",
        message:
          "Operator eva@example.com is revoked. An admin lets them in again with a new operator of that name: petstore operators create --name eva@example.com --role admin",
      });
  });

  test("a person of the provider has no token, and one that they made in release 1.3.0 ends with the next sign-in", async ({
    operators,
  }) => {
    const person = {
      name: "eva@example.com",
      role: "admin",
      subject: "issuer 1",
      expiresAt: AT + HOUR,
    } as const;
    const admit = (text: string, hint = NO_TOKEN) =>
      operators.admitOperator(person, { ...token(text), hint }, by);
    // A rotation left it so in that release.
    expect(await admit("made", token("made").hint)).toMatchObject({ tokenHash: hashOf("made") });
    expect(await operators.rotateOperator(1, token("next"), by)).toMatchObject({
      code: "operator_of_provider",
      message:
        "Operator eva@example.com signs in with the provider and has no token. For petstore login, the console makes a code on its page of settings.",
    });
    expect(await admit("one")).toMatchObject({ tokenHash: hashOf("one") });
    expect([...(await operators.readAccess()).tokens.keys()]).toEqual([hashOf("one")]);
    expect(await admit("two")).toMatchObject({ tokenHash: hashOf("one") });
  });

  test("admitOperator: a revoked person is let in again by a new operator of that name, whatever the address is", async ({
    operators,
  }) => {
    await create(operators, "ann");
    const [old, now] = ["eva@example.com", "eva@new.example"];
    let tokens = 0;
    const admit = async (name: string, subject = "issuer 1") => {
      const person = { name, role: "viewer", subject, expiresAt: AT + HOUR } as const;
      const admitted = await operators.admitOperator(person, token(`${++tokens}`), by);
      return "code" in admitted ? admitted.message : admitted.operator.id;
    };
    const again = async (name: string) => {
      const created = operators.createOperator({ name, role: "viewer" }, token(`${++tokens}`), by);
      return operatorIn(await created).id;
    };
    const revoke = async (id: number, at: number) =>
      operatorIn(await operators.revokeOperator(id, { ...by, at }));
    const blocked = (name: string) => expect.stringContaining(`petstore operators create --name ${name}`);
    await revoke(Number(await admit(old)), AT);
    expect(await admit(old)).toEqual(blocked(old));
    const second = await again(old);
    expect(await admit(old)).toBe(second);
    await revoke(second, AT + 1);
    expect([await admit(old), await admit(now)]).toEqual([blocked(old), blocked(old)]);
    // An operator of another name lets nobody in.
    await again("eva");
    expect(await admit(now)).toEqual(blocked(old));
    const third = await again(old);
    const thirdToken = hashOf(`${tokens}`);
    const current = await admit(now);
    expect(current).toBeNumber();
    expect(await admit(now)).toBe(current);
    // What let them in is theirs and over, and to revoke it ends what they have.
    const { tokens: known } = await operators.readAccess();
    expect(known.get(thirdToken)?.operator).toMatchObject({
      id: third,
      subject: "issuer 1",
      expiresAt: AT,
    });
    await revoke(third, AT + 2);
    expect([await admit(now), await admit(old)]).toEqual([blocked(now), blocked(old)]);
  });

  test("admitOperator: a revoked person does not come back by an address that is somebody else's now", async ({
    operators,
  }) => {
    await create(operators, "ann");
    const name = "eva@example.com";
    const admit = (subject: string, text: string, address = name) => {
      const person = { name: address, role: "viewer", subject, expiresAt: AT + HOUR } as const;
      return operators.admitOperator(person, token(text), by);
    };
    const eva = await admit("issuer 1", "one");
    if ("code" in eva) throw new Error(eva.message);
    await operators.revokeOperator(eva.operator.id, by);
    await create(operators, name, "viewer");
    expect(await admit("issuer 2", "two")).toMatchObject({ operator: { subject: "issuer 2" } });
    for (const address of ["eva@new.example", name])
      expect(await admit("issuer 1", "three", address)).toMatchObject({ code: "operator_not_active" });
  });

  test("admitOperator: a person with another address has one active operator, and is revoked by every address", async (opened) => {
    const { operators, audit } = opened;
    const admit = async (name: string, text: string, at = AT) => {
      const person = { name, role: "admin", subject: "issuer 1", expiresAt: at + HOUR } as const;
      const admitted = await operators.admitOperator(person, token(text), { ...by, at });
      if ("code" in admitted) throw new Error(admitted.message);
      const { operator, tokenHash } = admitted;
      const signIn = { ...session(text, operator.id, text, at), tokenHash };
      expect(await operators.createSession(signIn, SIGNED_IN)).toBe(true);
      return operator;
    };
    const states = async (now: number) =>
      (await operators.listOperators()).map((each) => `${each.name} ${operatorState(each, now)}`);
    const sessions = async () => [...(await operators.readAccess()).sessions.keys()];
    await create(operators, "ann");
    const old = await admit("eva@example.com", "one");
    const current = await admit("eva@new.example", "two");
    expect(await states(AT)).toEqual(["ann active", "eva@example.com expired", "eva@new.example active"]);
    expect(await sessions()).toEqual([hashOf("cookie-two")]);
    const [updated] = (await audit.listAudit({ action: "operator.updated", limit: 9 })).items;
    expect(updated).toMatchObject({
      target: { id: BigInt(old.id) },
      before: { expiresAt: expect.any(String) },
    });
    // The first address again: what it had does not come back.
    expect((await admit("eva@example.com", "three", AT + 1)).id).toBe(old.id);
    expect(await states(AT + 1)).toEqual(["ann active", "eva@example.com active", "eva@new.example expired"]);
    expect(await sessions()).toEqual([hashOf("cookie-three")]);
    await operators.expirePerson("issuer 2", { ...by, at: AT + 2 });
    expect(await sessions()).toHaveLength(1);
    await operators.expirePerson("issuer 1", { ...by, at: AT + 2 });
    expect(await states(AT + 2)).toEqual([
      "ann active",
      "eva@example.com expired",
      "eva@new.example expired",
    ]);
    expect(await sessions()).toEqual([]);
    await admit("eva@example.com", "four", AT + 3);
    operatorIn(await operators.revokeOperator(current.id, by));
    expect(await states(AT + 3)).toEqual([
      "ann active",
      "eva@example.com revoked",
      "eva@new.example revoked",
    ]);
    expect(await sessions()).toEqual([]);
    const revoked = (await audit.listAudit({ action: "operator.revoked", limit: 9 })).items;
    expect(revoked.map(({ after }) => after?.["name"])).toContainAllValues([
      "eva@example.com",
      "eva@new.example",
    ]);
  });

  test("admitOperator: the last admin whose token does not expire stays one", async ({ operators }) => {
    const name = "root@example.com";
    await create(operators, name);
    const person = { name, role: "admin", subject: "issuer 1", expiresAt: AT + HOUR } as const;
    expect(rejectionCode(await operators.admitOperator(person, token("b"), by))).toBe("last_admin");
    expect([...(await operators.readAccess()).tokens.keys()]).toEqual([hashOf(name)]);
    await create(operators, "ann");
    expect(await operators.admitOperator(person, token("b"), by)).toMatchObject({ tokenHash: hashOf("b") });
  });

  test("admitOperator: a replaced token stays known unless nobody ever knew it", async ({ operators }) => {
    const person = { name: "eva@example.com", role: "admin", expiresAt: AT + HOUR } as const;
    const tokens = [{ ...token("one"), hint: NO_TOKEN }, token("two"), { ...token("three"), hint: NO_TOKEN }];
    // Each is of another person, so it replaces the token before.
    for (const [i, each] of tokens.entries())
      expect(await operators.admitOperator({ ...person, subject: `issuer ${i}` }, each, by)).toMatchObject({
        tokenHash: each.hash,
      });
    const give = (text: string) => operators.importOperator({ name: text, role: "admin" }, token(text), by);
    for (const text of ["two", "three"]) expect(await give(text)).toMatchObject({ code: "invalid_token" });
    expect(await give("one")).toMatchObject({ name: "one" });
  });

  test("createOperator: a name is that of one at a time; who was revoked comes back as a new operator", async ({
    operators,
  }) => {
    await create(operators, "root");
    const { id } = await create(operators, "ann", "viewer");
    const again = (text: string) => operators.createOperator(ANN, token(text), by);
    const exists = { code: "operator_exists", message: "There is an operator ann already." };
    expect(await again("again")).toMatchObject(exists);
    const revoked = operatorIn(await operators.revokeOperator(id, by));
    const back = operatorIn(await again("again"));
    expect(back.id).not.toBe(id);
    expect(await again("more")).toMatchObject(exists);
    expect(await operators.listOperators("ann")).toEqual([revoked, back]);
    expect([...(await operators.readAccess()).tokens.keys()].toSorted()).toEqual(
      [hashOf("root"), hashOf("again")].toSorted(),
    );
    // The token of the revoked operator stays invalid.
    expect(await operators.importOperator(ANN, token("ann"), by)).toMatchObject({ code: "invalid_token" });
  });

  test("createOperator: at most 200 are active; those who have expired do not count, and come back while there is room", async ({
    operators,
  }) => {
    const expired = { role: "viewer", expiresAt: AT + HOUR } as const;
    const later = { ...by, at: AT + HOUR };
    const person = { name: "eva@example.com", subject: "issuer 1", ...expired } as const;
    expect(await operators.admitOperator(person, token("eva"), by)).toMatchObject({
      tokenHash: hashOf("eva"),
    });
    const names = (of: string, length: number) => Array.from({ length }, (_, n) => `${of}-${n}`);
    await Promise.all(
      names("expired", 199).map((name) => operators.createOperator({ name, ...expired }, token(name), by)),
    );
    const one = (text: string, at: typeof later) => operators.createOperator(ANN, token(text), at);
    expect(rejectionCode(await one("early", by))).toBe("too_many_operators");
    const create1 = async (name: string) =>
      operatorIn(await operators.createOperator({ name, role: "metrics" }, token(name), later));
    const [first] = await Promise.all(names("program", 199).map(create1));
    const again = (at: number) =>
      operators.admitOperator({ ...person, expiresAt: at + HOUR }, token(`again-${at}`), { ...by, at });
    expect(await again(later.at)).toMatchObject({ tokenHash: hashOf(`again-${later.at}`) });
    expect(rejectionCode(await one("late", later))).toBe("too_many_operators");
    const update = () => operators.updateOperator(2, { expiresAt: null }, later);
    expect(rejectionCode(await update())).toBe("too_many_operators");
    await operators.revokeOperator(first?.id ?? 0, later);
    expect(await update()).toMatchObject({ id: 2 });
    // Eva's sign-in has expired, and somebody has taken the place.
    operatorIn(await one("in-time", { ...by, at: AT + 3 * HOUR }));
    expect(rejectionCode(await again(AT + 3 * HOUR))).toBe("too_many_operators");
  }, 60_000);

  test("listOperators and readAccess: all who are active and, up to 500, those who expired last", async ({
    operators,
  }) => {
    await create(operators, "root");
    // Times before now: nobody of them is active, so there may be more than 200.
    const names = Array.from({ length: 502 }, (_, n) => `former-${n}`);
    await Promise.all(
      names.map((name, n) =>
        operators.createOperator({ name, role: "viewer", expiresAt: AT - n }, token(name), by),
      ),
    );
    await create(operators, "ann");
    const listed = (await operators.listOperators()).map(({ name }) => name);
    expect(listed.toSorted()).toEqual(["root", "ann", ...names.slice(0, 498)].toSorted());
    expect((await operators.readAccess()).tokens.size).toBe(500);
    expect(await operators.listOperators("former-501")).toMatchObject([{ name: "former-501" }]);
  }, 60_000);

  test("createFirstOperator: of processes that start together one creates it, and none does later", async (opened) => {
    const { operators, another } = opened;
    await create(operators, "prometheus", "metrics");
    const all = [operators, (await another()).operators, (await another()).operators];
    const created = await Promise.all(all.map((each, n) => each.createFirstOperator(ANN, token(`${n}`), by)));
    expect(created.filter((each) => each !== undefined)).toHaveLength(1);
    expect(await operators.listOperators()).toHaveLength(2);
    expect(await operators.createFirstOperator({ ...ANN, name: "bob" }, token("bob"), by)).toBeUndefined();
  });

  test("createFirstOperator: a name that somebody has is not given again", async ({ operators }) => {
    const { id } = await create(operators, "ann", "viewer");
    expect(await operators.createFirstOperator(ANN, token("first"), by)).toBeUndefined();
    operatorIn(await operators.revokeOperator(id, by));
    expect(await operators.createFirstOperator(ANN, token("first"), by)).toBeUndefined();
  });

  test("rotateOperator: only the new token lets in, and the other sessions end", async (opened) => {
    const { operators, audit, another } = opened;
    const { id } = await create(operators, "ann");
    const bob = await create(operators, "bob");
    for (const name of ["one", "two"]) await operators.createSession(session(name, id, "ann"), SIGNED_IN);
    await operators.createSession(session("bob", bob.id, "bob"), SIGNED_IN);
    await operators.createCode({ codeHash: hashOf("code"), operatorId: id, endsAt: AT + 1 }, AT);
    const keeps = session("two", id, "ann").cookieHash;
    const rotated = await operators.rotateOperator(id, { ...token("next"), keeps }, { ...by, at: AT + 5 });
    const { hint } = token("next");
    expect(rotated).toEqual({ id, ...ANN, hint, createdAt: AT, issuedAt: AT + 5 });
    const { tokens, sessions, codes } = await (await another()).operators.readAccess();
    expect([...tokens.keys()].toSorted()).toEqual([hashOf("bob"), hashOf("next")].toSorted());
    expect([...sessions.values()]).toContainAllValues([
      session("two", id, "next"),
      session("bob", bob.id, "bob"),
    ]);
    expect(sessions.size).toBe(2);
    expect(codes.size).toBe(0);
    const { items } = await audit.listAudit({ action: "operator.rotated", limit: 9 });
    const target = { kind: "operator", id: BigInt(id) } as const;
    expect(items).toMatchObject([{ target, after: { name: "ann", hint } }]);
    expect(rejectionCode(await operators.rotateOperator(99, token("x"), by))).toBe("operator_not_found");
  });

  /** Rotates the token of the first operator. */
  const overlap = (operators: OperatorStore, next: string, minutes: number, at = AT) =>
    operators.rotateOperator(1, { ...token(next), overlapEndsAt: at + minutes * 60_000 }, { ...by, at });
  const validUntil = async (operators: OperatorStore) =>
    Object.fromEntries(
      [...(await operators.readAccess()).tokens].map(([hash, each]) => [hash, each.validUntil]),
    );

  test("rotateOperator with an overlap: the earlier token works until then, sessions and codes know theirs, and the audit trail says when", async (opened) => {
    const { operators, audit, another } = opened;
    const { id } = await create(operators, "ann");
    const signIn = (name: string, with_ = name) =>
      operators.createSession(session(name, id, with_), SIGNED_IN);
    await signIn("ann");
    const codeOf = (name: string) => ({ codeHash: hashOf(name), operatorId: id, endsAt: AT + 1 });
    await operators.createCode(codeOf("before"), AT);
    const endsAt = AT + 600_000;
    const rotated = await overlap(operators, "next", 10);
    await operators.createCode(codeOf("after"), AT);
    expect((await operators.readAccess()).codes.get(hashOf("after"))?.tokenHash).toBe(hashOf("next"));
    const { hint } = token("next");
    expect(rotated).toEqual({ id, ...ANN, hint, createdAt: AT, issuedAt: AT, overlapEndsAt: endsAt });
    const other = (await another()).operators;
    expect(await other.listOperators()).toStrictEqual([operatorIn(rotated)]);
    expect(await validUntil(other)).toEqual({ [hashOf("ann")]: endsAt, [hashOf("next")]: undefined });
    const access = await other.readAccess();
    expect([...access.sessions.values()]).toEqual([session("ann", id, "ann")]);
    expect(access.codes.get(hashOf("before"))?.tokenHash).toBe(hashOf("ann"));
    expect(access.tokens.get(hashOf("ann"))?.operator.id).toBe(id);
    const after = { name: "ann", hint, previousTokensValidUntil: new Date(endsAt).toISOString() };
    const { items } = await audit.listAudit({ action: "operator.rotated", limit: 9 });
    expect(items).toMatchObject([{ after }]);
    // Both make sessions, and only the newest replaces itself.
    expect([await signIn("two", "ann"), await signIn("three", "next")]).toEqual([true, true]);
    const late = operators.createSession(session("late", id, "ann", endsAt), SIGNED_IN);
    expect(await late).toBeFalse();
    const replaced = await operators.rotateOperator(id, { ...token("x"), replaces: hashOf("ann") }, by);
    expect(rejectionCode(replaced)).toBe("invalid_token");
    // A token that was replaced is nobody's new one.
    expect(await operators.importOperator(ANN, token("ann"), by)).toMatchObject({ code: "invalid_token" });
    operatorIn(await operators.rotateOperator(id, token("last"), by));
    expect(await validUntil(other)).toEqual({ [hashOf("last")]: undefined });
    expect((await operators.listOperators())[0]?.overlapEndsAt).toBeUndefined();
    expect((await other.readAccess()).sessions.size).toBe(0);
  });

  test("rotateOperator with an overlap: a shorter one ends earlier ones too, and at most 10 earlier tokens work", async (opened) => {
    const { operators } = opened;
    const { id } = await create(operators, "ann");
    await overlap(operators, "b", 60);
    await overlap(operators, "c", 5);
    const endsAt = AT + 300_000;
    const [a, b, c] = [hashOf("ann"), hashOf("b"), hashOf("c")];
    expect(await validUntil(operators)).toEqual({ [a]: endsAt, [b]: endsAt, [c]: undefined });
    // What is over keeps its end.
    await overlap(operators, "d", 5, endsAt);
    const [later, d] = [endsAt + 300_000, hashOf("d")];
    expect(await validUntil(operators)).toEqual({ [a]: endsAt, [b]: endsAt, [c]: later, [d]: undefined });
    for (let n = 0; n < 12; n++) await overlap(operators, `n${n}`, 60, endsAt + 1 + n);
    const kept = Object.keys(await validUntil(operators));
    expect(kept).toHaveLength(11);
    expect([kept.includes(hashOf("n0")), kept.includes(hashOf("n1"))]).toEqual([false, true]);
    await create(operators, "bob");
    expect(operatorIn(await operators.revokeOperator(id, by)).overlapEndsAt).toBeUndefined();
    expect(await validUntil(operators)).toEqual({ [hashOf("bob")]: undefined });
  });

  test("updateOperator: role and expiry, on every process, with both values in the audit trail", async (opened) => {
    const { operators, audit, another } = opened;
    await create(operators, "root");
    const ann = await create(operators, "ann", "viewer");
    const expiresAt = AT + HOUR;
    const update = async (change: OperatorChange) =>
      operatorIn(await operators.updateOperator(ann.id, change, by));
    expect(await update({ role: "support", expiresAt })).toEqual({ ...ann, role: "support", expiresAt });
    const other = (await another()).operators;
    expect((await other.listOperators())[1]).toStrictEqual({ ...ann, role: "support", expiresAt });
    const target = { kind: "operator", id: BigInt(ann.id) } as const;
    const entries = async () =>
      (await audit.listAudit({ target, action: "operator.updated", limit: 9 })).items;
    const at = new Date(expiresAt).toISOString();
    expect(await entries()).toMatchObject([
      {
        before: { role: "viewer", expiresAt: null },
        after: { name: "ann", role: "support", expiresAt: at },
      },
    ]);
    // Nothing changes, and nothing is recorded.
    await update({ role: "support" });
    expect(await entries()).toHaveLength(1);
    const signIn = (name: string, createdAt: number) =>
      operators.createSession(session(name, ann.id, "ann", createdAt), SIGNED_IN);
    expect([await signIn("late", expiresAt), await signIn("in-time", expiresAt - 1)]).toEqual([false, true]);
    const rotation = operators.rotateOperator(ann.id, token("x"), { ...by, at: expiresAt });
    expect(await rotation).toMatchObject({
      code: "operator_not_active",
      message: expect.stringContaining("expired"),
    });
    expect(await update({ expiresAt: null })).toEqual({ ...ann, role: "support" });
    // The role metrics cannot sign in.
    expect((await other.readAccess()).sessions.size).toBe(1);
    await update({ role: "metrics" });
    expect((await other.readAccess()).sessions.size).toBe(0);
    expect(rejectionCode(await operators.updateOperator(99, { role: "admin" }, by))).toBe(
      "operator_not_found",
    );
    operatorIn(await operators.revokeOperator(ann.id, by));
    const revoked = operators.updateOperator(ann.id, { role: "admin" }, by);
    expect(rejectionCode(await revoked)).toBe("operator_not_active");
  });

  test("updateOperator: one admin without an expiry stays, also if two give up the role at the same time", async (opened) => {
    const { operators, another } = opened;
    const [ann, bob] = [await create(operators, "ann"), await create(operators, "bob")];
    const other = (await another()).operators;
    const demotions = [
      operators.updateOperator(ann.id, { role: "viewer" }, by),
      other.updateOperator(bob.id, { expiresAt: AT + HOUR }, by),
    ];
    const codes = (await Promise.all(demotions)).map(rejectionCode);
    expect(codes.filter((code) => code === "last_admin")).toHaveLength(1);
    const last = codes[0] === "last_admin" ? ann : bob;
    for (const change of [{ role: "support" }, { expiresAt: AT + HOUR }] as const)
      expect(rejectionCode(await operators.updateOperator(last.id, change, by))).toBe("last_admin");
    expect(rejectionCode(await operators.revokeOperator(last.id, by))).toBe("last_admin");
    operatorIn(await operators.updateOperator(last.id, { role: "admin", expiresAt: null }, by));
  });

  test("createOperator with an expiry", async ({ operators, audit }) => {
    const expiresAt = AT + HOUR;
    const created = await operators.createOperator({ ...ANN, expiresAt }, token("ann"), by);
    expect(await operators.listOperators()).toStrictEqual([operatorIn(created)]);
    expect(created).toMatchObject({ expiresAt });
    // The first start makes an admin who does not expire.
    operatorIn(await operators.createFirstOperator({ name: "admin", role: "admin" }, token("first"), by));
    const entry = (await audit.listAudit({ limit: 9 })).items.at(-1);
    expect(entry?.after).toMatchObject({ expiresAt: new Date(expiresAt).toISOString() });
  });

  test("a token that was replaced makes no session, and replaces no token", async ({ operators }) => {
    const { id } = await create(operators, "ann");
    const signIn = (name: string) => operators.createSession(session(name, id, name), SIGNED_IN);
    expect(await signIn("ann")).toBeTrue();
    const replace = (next: string, replaces: string) =>
      operators.rotateOperator(id, { ...token(next), replaces: hashOf(replaces) }, by);
    operatorIn(await replace("next", "ann"));
    expect(await signIn("ann")).toBeFalse();
    expect(rejectionCode(await replace("another", "ann"))).toBe("invalid_token");
    expect([...(await operators.readAccess()).sessions]).toEqual([]);
    expect(await signIn("next")).toBeTrue();
  });

  test("revokeOperator: token and sessions are gone; a second time changes nothing; the last admin stays", async (opened) => {
    const { operators, audit, another } = opened;
    const ann = await create(operators, "ann");
    const bob = await create(operators, "bob");
    await operators.createSession(session("bob", bob.id, "bob"), SIGNED_IN);
    const revoked = { ...bob, revokedAt: AT + 7 };
    expect(operatorIn(await operators.revokeOperator(bob.id, { ...by, at: AT + 7 }))).toEqual(revoked);
    expect(operatorIn(await operators.revokeOperator(bob.id, { ...by, at: AT + 9 }))).toEqual(revoked);
    const access = await (await another()).operators.readAccess();
    expect([[...access.tokens.keys()], access.sessions.size]).toEqual([[hashOf("ann")], 0]);
    expect(await operators.listOperators()).toStrictEqual([ann, revoked]);
    expect((await audit.listAudit({ action: "operator.revoked", limit: 9 })).items).toHaveLength(1);
    expect(rejectionCode(await operators.rotateOperator(bob.id, token("x"), by))).toBe("operator_not_active");
    expect(rejectionCode(await operators.revokeOperator(ann.id, by))).toBe("last_admin");
    expect(rejectionCode(await operators.revokeOperator(99, by))).toBe("operator_not_found");
  });

  test("revokeOperator: two admins who revoke each other at the same time leave one", async (opened) => {
    const { operators, another } = opened;
    const [ann, bob] = [await create(operators, "ann"), await create(operators, "bob")];
    const other = (await another()).operators;
    const revocations = [operators.revokeOperator(ann.id, by), other.revokeOperator(bob.id, by)];
    const results = await Promise.all(revocations);
    expect(results.map(rejectionCode).filter((code) => code === "last_admin")).toHaveLength(1);
  });

  test("recordUse: to the hour", async ({ operators }) => {
    const { id } = await create(operators, "ann");
    const used: (number | undefined)[] = [];
    for (const at of [AT, AT + HOUR - 1, AT + HOUR]) {
      await operators.recordUse(id, at);
      used.push((await operators.listOperators())[0]?.lastUsedAt);
    }
    expect(used).toEqual([AT, AT, AT + HOUR]);
  });

  test("takeCode: of processes that have the same code one gets it; expired codes are deleted, and each operator has at most 5", async (opened) => {
    const { operators, another } = opened;
    const { id } = await create(operators, "ann");
    const bob = await create(operators, "bob");
    const made = { madeBy: "admin-url (root)", madeIn: hashOf("cookie") };
    const code = { codeHash: hashOf("code"), operatorId: id, endsAt: AT + 10, ...made };
    const stored = { ...code, tokenHash: hashOf("ann") };
    await operators.createCode(code, AT);
    const codes = async () => (await operators.readAccess()).codes;
    expect((await codes()).get(code.codeHash)).toStrictEqual(stored);
    const other = (await another()).operators;
    const taken = await Promise.all([operators.takeCode(code.codeHash), other.takeCode(code.codeHash)]);
    expect(taken.filter((each) => each !== undefined)).toEqual([stored]);
    await operators.createCode(code, AT);
    const ofBob = { ...code, operatorId: bob.id, codeHash: hashOf("bob"), endsAt: AT + 20 };
    await operators.createCode(ofBob, AT + 10);
    const create1 = (n: number) =>
      operators.createCode({ ...code, codeHash: hashOf(`${n}`), endsAt: AT + 21 + n }, AT + 10);
    for (let n = 0; n < 6; n++) await create1(n);
    const kept = [...(await codes()).keys()];
    expect(kept.toSorted()).toEqual(
      [hashOf("bob"), ...[1, 2, 3, 4, 5].map((n) => hashOf(`${n}`))].toSorted(),
    );
  });

  test("sessions: signing in and out is in the audit trail; expired ones are deleted, and each operator has at most 50", async (opened) => {
    const { operators, audit, another } = opened;
    const { id } = await create(operators, "ann");
    const one = session("one", id, "ann");
    await operators.createSession(one, SIGNED_IN);
    const other = (await another()).operators;
    expect((await other.readAccess()).sessions.get(one.cookieHash)).toStrictEqual(one);
    for (let n = 0; n < 2; n++)
      await other.deleteSession(one.cookieHash, { ...SIGNED_IN, action: "admin.signed-out" });
    expect((await operators.readAccess()).sessions.size).toBe(0);
    const actions = (await audit.listAudit({ limit: 9 })).items.map(({ action }) => action);
    expect(actions).toEqual(["admin.signed-out", "admin.signed-in", "operator.created"]);

    const [bob, code] = [await create(operators, "bob"), hashOf("code")];
    for (const name of ["one", "two"]) await operators.createSession(session(name, id, "ann"), SIGNED_IN);
    await operators.createSession(session("bob", bob.id, "bob"), SIGNED_IN);
    await operators.createCode({ codeHash: code, operatorId: id, endsAt: AT + 1 }, AT);
    for (let n = 0; n < 2; n++) await other.deleteSessions(id, by);
    const { sessions, codes } = await operators.readAccess();
    expect([...sessions.values()].map(({ operatorId }) => operatorId)).toEqual([bob.id]);
    expect(codes.size).toBe(0);
    const { items } = await audit.listAudit({ action: "admin.signed-out", limit: 9 });
    expect(items).toMatchObject([{ ...by, after: { sessions: 2 } }, {}]);
    await operators.deleteSessions(bob.id, by);

    await operators.createSession(one, SIGNED_IN);
    // It remembers the session in which its code was made.
    const ofBob = { ...session("bob", bob.id, "bob"), madeIn: one.cookieHash, endsAt: one.endsAt + HOUR };
    await operators.createSession(ofBob, SIGNED_IN);
    expect((await operators.readAccess()).sessions.get(ofBob.cookieHash)).toStrictEqual(ofBob);
    const signIn = (n: number) =>
      operators.createSession(session(`${n}`, id, "ann", one.endsAt + n), SIGNED_IN);
    for (let n = 0; n <= 50; n++) await signIn(n);
    const kept = (await operators.readAccess()).sessions;
    expect([...kept.values()].filter(({ operatorId }) => operatorId === id)).toHaveLength(50);
    expect(kept.has(session("0", id, "ann").cookieHash)).toBeFalse();
    expect(kept.has(ofBob.cookieHash)).toBeTrue();
  });
}
