import { expect, test } from "bun:test";
import * as fc from "fast-check";
import { ReadBuffer } from "../../src/http1/read-buffer.ts";

const operation = fc.oneof(
  fc.record({ append: fc.string({ unit: fc.constantFrom("a", "b", "\r", "\n"), maxLength: 12 }) }),
  fc.record({ take: fc.nat(8) }),
  fc.record({ skip: fc.nat(8) }),
  fc.record({ search: fc.nat(20) }),
);

test("a buffer behaves like a string, whatever is appended and taken", () => {
  const property = fc.property(fc.array(operation, { maxLength: 60 }), (operations) => {
    const buffer = new ReadBuffer();
    let model = "";
    const taken: Buffer[] = [];
    let expectedTaken = "";
    for (const each of operations) {
      if ("append" in each) {
        buffer.append(Buffer.from(each.append, "latin1"));
        model += each.append;
      } else if ("take" in each) {
        taken.push(buffer.take(each.take));
        expectedTaken += model.slice(0, each.take);
        model = model.slice(each.take);
      } else if ("skip" in each) {
        const count = Math.min(each.skip, model.length);
        buffer.skip(count);
        model = model.slice(count);
      } else {
        const from = Math.min(each.search, model.length);
        expect(buffer.indexOfLineFeed(from)).toBe(model.indexOf("\n", from));
        expect(buffer.byteAt(each.search)).toBe(model.at(each.search)?.charCodeAt(0));
      }
      expect([buffer.length, buffer.text(0, 10_000)]).toEqual([model.length, model]);
      expect(buffer.text(1, 3)).toBe(model.slice(1, 3));
    }
    // What was taken earlier is not overwritten by what was appended later.
    expect(Buffer.concat(taken).toString("latin1")).toBe(expectedTaken);
  });
  fc.assert(property, { numRuns: 500 });
});
