import { expect, test } from "bun:test";
import { curlCommand, shellWord } from "../../src/text/curl.ts";

const url = "http://127.0.0.1:8080/v1/pets";

test("a command names the method only if curl would choose another", () => {
  expect(curlCommand({ url })).toBe(`curl ${url}`);
  expect(curlCommand({ url, method: "POST", body: "{}" })).toBe(`curl ${url} \\\n  -d "{}"`);
  expect(curlCommand({ url, method: "PATCH", body: "{}" })).toStartWith(`curl -X PATCH ${url}`);
});

test("a shell expands the key and nothing else", () => {
  const headers = [["Idempotency-Key", "$1"]] as const;
  expect(curlCommand({ url, secret: "$KEY", headers, showsHeaders: true }, " ")).toBe(
    `curl -i ${url} -H "Authorization: Bearer $KEY" -H 'Idempotency-Key: $1'`,
  );
});

test("a text is one word to a shell", () => {
  expect(shellWord(url)).toBe(url);
  expect(shellWord("http://[::1]/?a&b")).toBe('"http://[::1]/?a&b"');
  expect(shellWord("http://[::1]/it's/$(x)")).toBe("'http://[::1]/it'\\''s/$(x)'");
  for (const text of ['"', "`x`", "a\\", "!x"]) expect(shellWord(text)).toBe(`'${text}'`);
});
