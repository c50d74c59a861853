import type { Replies, Reply } from "./replies.ts";

/** nginx repeating the same answers by `return`: a private configuration, one process, loopback only. */
export function nginxConfig(
  folder: string,
  replies: Replies,
  ports: Readonly<Record<string, number>>,
): string {
  const servers = Object.entries(replies).map(([work, { list, get, create }]) => {
    const first = list ?? create;
    const collection = [create && list ? post(create) : "", first ? answer(first) : ""];
    return `
  server {
    listen 127.0.0.1:${ports[work]};
    location = /v1/pets {${collection.join("")}
    }${get ? `\n    location /v1/pets/ {${answer(get)}\n    }` : ""}
  }`;
  });
  return configuration(folder, servers.join(""));
}

const TEMPORARY = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];

function configuration(folder: string, servers: string): string {
  return `daemon off;
master_process off;
worker_processes 1;
pid ${folder}/nginx.pid;
error_log stderr crit;
events { worker_connections 1024; }
http {
  access_log off;
  server_tokens off;
  keepalive_requests 1000000000;
  ${TEMPORARY.map((name) => `${name}_temp_path ${folder}/${name};`).join("\n  ")}
  types {}
  default_type application/json;${servers}
}
`;
}

function answer({ status, headers, body }: Reply): string {
  const lines = Object.entries(headers)
    .filter(([name]) => name.toLowerCase() !== "content-type")
    .map(([name, value]) => `add_header ${name} ${quoted(value)} always;`);
  return [...lines, `return ${status} ${quoted(body)};`].map((line) => `\n      ${line}`).join("");
}

function post(reply: Reply): string {
  return `\n      if ($request_method = POST) {${answer(reply)}\n      }`;
}

/** `$` would begin a variable and cannot be escaped; no answer of the benchmark's holds one. */
function quoted(text: string): string {
  if (text.includes("$")) throw new Error("nginx cannot return a dollar sign");
  return `'${text.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`;
}
