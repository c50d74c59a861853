import { expect, jest, test } from "bun:test";
import { mkdirSync, rmSync, unlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { followFiles } from "../../src/config/follow-files.ts";
import { followTlsFiles } from "../../src/config/tls.ts";
import { messageOf } from "../../src/runtime/message-of.ts";
import { temporaryDirectory } from "../../trials/harness/cleanup.ts";
import { useFakeTimers } from "../fake-timers.ts";
import { certificateOf } from "../http1/certificate.ts";

useFakeTimers();

const directory = temporaryDirectory("followed-files");
const [certFile, keyFile] = [join(directory, "a.crt"), join(directory, "a.key")];
const [first, second] = [certificateOf("first"), certificateOf("second")];

/** What has happened after each second. */
function eventsAfter(events: string[], seconds: number): string[] {
  return Array.from({ length: seconds }, (_, second) => {
    jest.advanceTimersByTime(1_000);
    return events.splice(0).map((event) => `${second + 1} ${event}`);
  }).flat();
}

test("files are read once when they have changed and were the same for a second, whatever becomes of them", () => {
  writeFileSync(certFile, "1");
  writeFileSync(keyFile, "1");
  const events: string[] = [];
  let isReadable = true;
  const stop = followFiles([certFile, keyFile], {
    read() {
      if (!isReadable) throw new Error("unreadable");
      return "contents";
    },
    onChange: (contents) => events.push(contents),
    onError: (error) => events.push(messageOf(error)),
  });
  expect(eventsAfter(events, 5)).toEqual([]);
  writeFileSync(certFile, "22");
  expect(eventsAfter(events, 1)).toEqual([]);
  writeFileSync(keyFile, "22");
  expect(eventsAfter(events, 5)).toEqual(["2 contents"]);
  isReadable = false;
  unlinkSync(keyFile);
  expect(eventsAfter(events, 5)).toEqual(["2 unreadable"]);
  mkdirSync(keyFile);
  isReadable = true;
  expect(eventsAfter(events, 5)).toEqual([`2 ${certFile} or ${keyFile} is no regular file`]);
  rmSync(keyFile, { recursive: true });
  writeFileSync(keyFile, "333");
  expect(eventsAfter(events, 5)).toEqual(["2 contents"]);
  stop();
  writeFileSync(keyFile, "4444");
  expect([eventsAfter(events, 5), jest.getTimerCount()]).toEqual([[], 0]);
});

test("a certificate that does not fit its key is invalid after 30 seconds, unless the files change again", () => {
  writeFileSync(certFile, first.cert);
  writeFileSync(keyFile, first.key);
  const events: string[] = [];
  const follow = () =>
    followTlsFiles(
      { certFile, keyFile },
      {
        onChange: (contents) => events.push(contents.cert === second.cert ? "second" : "other"),
        onIncomplete: (error) => events.push(`incomplete: ${messageOf(error)}`),
        onInvalid: (error) => events.push(`invalid: ${messageOf(error)}`),
      },
    );
  const other = `--tls-key "${keyFile}" is not the private key of --tls-cert "${certFile}"`;
  const text = `--tls-cert is "${certFile}"; it is not a certificate in PEM format`;
  const followed = follow();
  writeFileSync(certFile, `${second.cert}\n`);
  expect(eventsAfter(events, 22)).toEqual([`2 incomplete: ${other}`]);
  writeFileSync(certFile, "text");
  expect(eventsAfter(events, 40)).toEqual([`2 incomplete: ${text}`, `32 invalid: ${text}`]);
  writeFileSync(certFile, second.cert);
  expect(eventsAfter(events, 5)).toEqual([`2 incomplete: ${other}`]);
  writeFileSync(keyFile, `${second.key}\n`);
  expect(eventsAfter(events, 40)).toEqual(["2 second"]);
  followed.close();
  const closed = follow();
  writeFileSync(keyFile, "text");
  expect(eventsAfter(events, 2)).toEqual([
    `2 incomplete: --tls-key is "${keyFile}"; it is not a private key in PEM format without passphrase`,
  ]);
  closed.close();
  expect([eventsAfter(events, 40), jest.getTimerCount()]).toEqual([[], 0]);
});
