import type { Kind } from "./balancer.ts";
import { HAPROXY, NGINX } from "./programs.ts";

/** Folders that nginx makes at its start, at places that only root may write to. */
const NGINX_FOLDERS = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];

export const nginx: Kind = {
  wanted: NGINX,
  program: "nginx",
  file: "nginx.conf",
  paths: (folder) => ({
    "/run/nginx.pid": `${folder}/nginx.pid`,
    "/var/log/nginx/error.log": "stderr",
    "http {": ["http {", ...NGINX_FOLDERS.map((name) => `${name}_temp_path ${folder}/${name};`)].join(
      "\n    ",
    ),
  }),
  // The log that the program was built with is written to until it has read another place for it.
  command: (program, file) => [program, "-e", "stderr", "-g", "daemon off;", "-c", file],
};

export const haproxy: Kind = {
  wanted: HAPROXY,
  program: "haproxy",
  file: "haproxy.cfg",
  paths: (folder) => ({ "/run/haproxy/admin.sock": `${folder}/admin.sock` }),
  command: (program, file) => [program, "-db", "-f", file],
};
