import type { Wanted } from "../engines/programs.ts";

/** Where Debian keeps them is not on everybody's path. */
const PATH = `${process.env.PATH ?? ""}:/usr/sbin:/usr/local/sbin`;

const folderOf = (program: string) => Bun.which(program, { PATH })?.replace(/\/[^/]*$/, "");

export const NGINX: Wanted = {
  name: "nginx",
  packages: ["nginx-light", "nginx"],
  find: () => folderOf("nginx"),
};

export const HAPROXY: Wanted = {
  name: "HAProxy",
  packages: ["haproxy"],
  find: () => folderOf("haproxy"),
};
