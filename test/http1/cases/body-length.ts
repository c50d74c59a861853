import { cases, chunked, CLOSES, get, head, post, WAITS } from "./case.ts";

const HELLO = 'POST / "hello"';
const length = (value: string, content = "hello") => post(content, `Content-Length: ${value}`);
/** A length of five, and another field. */
const five = (field: string) => post("hello", "Content-Length: 5", field);
/** A body, and the request with it that reaches the handler. */
const body = (text: string, value = `${text.length}`) =>
  [length(value, text), `POST / ${JSON.stringify(text)}`] as const;
const coding = (value: string, content = "0\r\n\r\n") => post(content, `Transfer-Encoding: ${value}`);
const codings = (...values: string[]) =>
  post("0\r\n\r\n", ...values.map((value) => `Transfer-Encoding: ${value}`));
const both = (value: string) =>
  post("5\r\nhello\r\n0\r\n\r\n", `Transfer-Encoding: ${value}`, "Content-Length: 15");

export const BODY_LENGTH = [
  ...cases("RFC 9112, 6.2: Content-Length", [
    ["a body", length("5"), HELLO],
    ["a body that looks like a request", ...body(get("/b"))],
    ["zero", length("0", ""), "POST /"],
    ["no length and no coding: no body", post(""), "POST /"],
    ...["GET", "HEAD", "OPTIONS", "DELETE"].map(
      (method) =>
        [`${method} with content`, length("5").replace("POST", method), `${method} / "hello"`] as const,
    ),
    ["HTTP/1.0", head("POST / HTTP/1.0", "Content-Length: 5") + "hello", HELLO, CLOSES],
    ["bytes of any value", ...body("\0\r\n\xff")],
    ["fewer bytes than the length", length("10"), WAITS],
    ["no bytes at all", length("10", ""), WAITS],
    ["a body larger than the handler reads", length("131073", ""), 413],
    ["a body of a gigabyte", length("999999999", ""), 413],
    ["a name with an underscore is another field", five("Content_Length: 99"), HELLO],
    ["upper case", post("hello", "CONTENT-LENGTH: 5"), HELLO],
  ]),
  ...cases("RFC 9110, 8.6: Content-Length", [
    ["two spaces before the value", length(" 5"), HELLO],
    ["a tab before the value", post("hello", "Content-Length:\t5"), HELLO],
    ["a space after the value", length("5 "), HELLO],
    ["leading zeros", length("005"), HELLO],
    ["00", length("00", ""), "POST /"],
    ["0200 is decimal", ...body("a".repeat(200), "0200")],
    ["an empty value", length("", ""), 400],
    ["only spaces", length("  ", ""), 400],
    ["letters", length("abc"), 400],
    ["letters after the number", length("5x"), 400],
    ["a plus sign", length("+5"), 400],
    ["a negative number", length("-1", ""), 400],
    ["minus zero", length("-0", ""), 400],
    ["a decimal point", length("5.0"), 400],
    ["an exponent", length("5e0"), 400],
    ["hexadecimal", length("0x5"), 400],
    ["octal", length("0o5"), 400],
    ["an underscore", length("1_0", "helloworld"), 400],
    ["a space inside", length("1 0", "helloworld"), 400],
    ["a quoted number", length('"5"'), 400],
    ["a full-width digit in UTF-8", length("\xef\xbc\x95"), 400],
    ["NUL after the number", length("5\0"), 400],
    ["a vertical tab before the number", length("\x0b5"), 400],
    ["2^53, which a double cannot count to", length("9007199254740992", ""), 400],
    ["2^64 and more", length("99999999999999999999", ""), 400],
    ["400 digits", length("9".repeat(400), ""), 400],
    ["a list of equal numbers", length("5, 5"), 400],
    ["a list of three equal numbers", length("5, 5, 5"), 400],
    ["a list of different numbers", length("5, 10"), 400],
    ["a comma at the end", length("5,"), 400],
    ["two equal fields", five("Content-Length: 5"), 400],
    ["two different fields", post("helloworld", "Content-Length: 5", "Content-Length: 10"), 400],
    ["two fields, one of them empty", five("Content-Length:"), 400],
    ["a space before the colon", post("hello", "Content-Length : 5"), 400],
    ["a second field with a space before the colon", five("Content-Length : 6"), 400],
    ["a tab in the name", five("Content\tLength: 9"), 400],
  ]),
  ...cases("RFC 9112, 6.1: Transfer-Encoding", [
    ["chunked", coding("chunked", "5\r\nhello\r\n0\r\n\r\n"), HELLO],
    ["any case", coding("ChUnKeD", "5\r\nhello\r\n0\r\n\r\n"), HELLO],
    ["the name in any case", post("5\r\nhello\r\n0\r\n\r\n", "TRANSFER-ENCODING: chunked"), HELLO],
    ["a tab before the value", post("0\r\n\r\n", "Transfer-Encoding:\tchunked"), "POST /"],
    ["a space after the value", coding("chunked "), "POST /"],
    ["a coding that the server does not know", coding("gzip"), 501],
    ["an unknown coding before chunked", coding("gzip, chunked"), 501],
    ["an unknown coding in a field of its own", codings("gzip", "chunked"), 501],
    ["an unknown coding with a parameter", coding("foo;a=b"), 501],
    ["identity", coding("identity"), 501],
    ["xchunked", coding("xchunked"), 501],
    ["chunkedx", coding("chunkedx"), 501],
    ["HTTP/1.0", head("POST / HTTP/1.0", "Host: x", "Transfer-Encoding: chunked") + "0\r\n\r\n", 400],
    [
      "HTTP/1.0 that asks to keep the connection",
      head("POST / HTTP/1.0", "Transfer-Encoding: chunked", "Connection: keep-alive") + "0\r\n\r\n",
      400,
    ],
    [
      "a name with an underscore is another field",
      post("hello", "Transfer_Encoding: chunked", "Content-Length: 5"),
      HELLO,
    ],
    ["GET with chunks", chunked("1\r\na\r\n0\r\n\r\n").replace("POST", "GET"), 'GET / "a"'],
  ]),
  ...cases("RFC 9112, 6.3: message body length", [
    ["chunked before another coding", coding("chunked, gzip"), 400],
    ["chunked twice", coding("chunked, chunked"), 400],
    ["chunked in two fields", codings("chunked", "chunked"), 400],
    ["chunked, then identity in a field of its own", codings("chunked", "identity"), 400],
    ["chunked with a parameter", coding("chunked;a=b"), 400],
    ["an empty value", coding(""), 400],
    ["only a comma", coding(","), 400],
    ["a comma before chunked", coding(", chunked"), 400],
    ["a comma after chunked", coding("chunked,"), 400],
    ["a semicolon after chunked", coding("chunked;"), 400],
    ["two words", coding("chunked chunked"), 400],
    ["quotation marks", coding('"chunked"'), 400],
    ["a vertical tab before the value", coding("\x0bchunked"), 400],
    ["a form feed before the value", coding("\fchunked"), 400],
    ["NUL after the value", coding("chunked\0"), 400],
    ["a byte above 127 after the value", coding("chunked\xa0"), 400],
    ["a space before the colon", post("0\r\n\r\n", "Transfer-Encoding : chunked"), 400],
    ["a folded value", post("0\r\n\r\n", "Transfer-Encoding:", " chunked"), 400],
    ["a length and chunked", both("chunked"), 400],
    ["a length and Chunked", both("Chunked"), 400],
    ["a length and chunked with a space", both("chunked "), 400],
    ["a length and a comma before chunked", both(", chunked"), 400],
    ["a length and an unknown coding", both("gzip"), 400],
    ["a length and xchunked", both("xchunked"), 400],
    ["a length and an empty coding", both(""), 400],
    ["a length of zero and chunked", chunked("0\r\n\r\n", "Content-Length: 0"), 400],
    ["a length that is not valid and chunked", chunked("0\r\n\r\n", "Content-Length: +5"), 400],
    ["an empty length and chunked", chunked("0\r\n\r\n", "Content-Length:"), 400],
  ]),
];
