import { readFileSync } from "node:fs";

/** The line of a user in the file of users: `ann:x:1000:1000:Ann:/home/ann:/bin/sh`. */
const USER = /^(?<name>[^:]+):[^:]*:(?<uid>\d+):/;

/**
 * The user who runs this process, by the number that the kernel knows. Bun's `userInfo` returns the variable USER,
 * which anybody can set and cron does not. A user that the file does not have, as in a container, is `user 1000`.
 */
export function userName(uid = process.getuid?.(), file = "/etc/passwd"): string | undefined {
  if (uid === undefined) return undefined;
  for (const line of linesOf(file)) {
    const user = USER.exec(line)?.groups;
    if (user && Number(user["uid"]) === uid) return user["name"];
  }
  return `user ${uid}`;
}

function linesOf(file: string): string[] {
  try {
    return readFileSync(file, "utf8").split("\n");
  } catch {
    return [];
  }
}
