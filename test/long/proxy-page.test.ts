/**
 * Runs the configuration files from the documentation page on proxies in real nginx and Caddy (Debian's packages `nginx` and `caddy`). The
 * service behind them is started as on the page.
 */
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { accessSync, constants, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import WebSocket from "ws";
import { blocksIn } from "../docs/pages.js";
import { type DocsReader, fillPlaceholders, freePort, reader, type StartedService } from "../harness/reader.js";
import { until } from "../harness/until.js";

const PAGE = "docs/operate/proxy.md";
const HOST = "actions.example.com";
const SERVICE_ADDRESS = "127.0.0.1:4000";

interface Proxy {
  https: number;
  http: number;
  /** File with the certificate that has signed the proxy's certificate. */
  authority: string;
  stop(): Promise<void>;
}

type StartProxy = (folder: string, file: string, servicePort: number) => Promise<Proxy>;

/** Checks that a program is installed. @throws Error that names the Debian package to install */
function requireProgram(path: string, debianPackage: string): string {
  try {
    accessSync(path, constants.X_OK);
  } catch {
    throw new Error(`${path} is missing: install Debian's package ${debianPackage} (apt-get install ${debianPackage})`);
  }
  return path;
}

function launch(path: string, args: string[], folder: string): { child: ChildProcess; stop: () => Promise<void> } {
  const child = spawn(path, args, { cwd: folder, env: { PATH: process.env["PATH"], HOME: folder }, stdio: "ignore" });
  const ended = once(child, "exit");
  const stop = async () => {
    child.kill("SIGTERM");
    await ended;
  };
  return { child, stop };
}

const startNginx: StartProxy = async (folder, file, servicePort) => {
  const path = requireProgram("/usr/sbin/nginx", "nginx");
  const [https, http] = [await freePort(), await freePort()];
  const [certificate, key] = [join(folder, "fullchain.pem"), join(folder, "privkey.pem")];
  const subject = ["-subj", `/CN=${HOST}`, "-addext", `subjectAltName=DNS:${HOST}`];
  const request = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", ...subject];
  execFileSync("openssl", [...request, "-keyout", key, "-out", certificate], { stdio: "ignore" });
  const site = fillPlaceholders(file, {
    "listen 443": `listen ${https}`,
    "listen 80": `listen ${http}`,
    [`/etc/letsencrypt/live/${HOST}/fullchain.pem`]: certificate,
    [`/etc/letsencrypt/live/${HOST}/privkey.pem`]: key,
    [SERVICE_ADDRESS]: `127.0.0.1:${servicePort}`,
  });
  writeFileSync(join(folder, "site"), site);
  const folders = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map(
    (name) => `${name}_temp_path ${folder}/${name};`,
  );
  const main = `pid ${folder}/pid; error_log ${folder}/error.log; events {} http { access_log off; ${folders.join(" ")} include ${folder}/site; }`;
  writeFileSync(join(folder, "nginx.conf"), main);
  const args = ["-c", join(folder, "nginx.conf"), "-e", join(folder, "error.log")];
  execFileSync(path, [...args, "-t"], { stdio: ["ignore", "ignore", "pipe"] });
  const { stop } = launch(path, [...args, "-g", "daemon off;"], folder);
  return { https, http, authority: certificate, stop };
};

const startCaddy: StartProxy = async (folder, file, servicePort) => {
  const path = requireProgram("/usr/bin/caddy", "caddy");
  const [https, http] = [await freePort(), await freePort()];
  const options = ["admin off", "local_certs", "skip_install_trust", `http_port ${http}`, `https_port ${https}`];
  const site = fillPlaceholders(file, { [SERVICE_ADDRESS]: `127.0.0.1:${servicePort}` });
  const globals = [...options, `storage file_system ${folder}/storage`].join("\n");
  writeFileSync(join(folder, "Caddyfile"), `{\n${globals}\n}\n${site}`);
  const { stop } = launch(path, ["run", "--config", join(folder, "Caddyfile"), "--adapter", "caddyfile"], folder);
  return { https, http, authority: join(folder, "storage/pki/authorities/local/root.crt"), stop };
};

describe("the page on proxies", function () {
  this.timeout(300_000);
  const [start] = blocksIn(PAGE, "sh", 1);
  const [caddyfile, nginxSite] = blocksIn(PAGE, "text", 2);
  let operator: DocsReader;
  let service: StartedService;
  let port: number;
  let token: string;

  before(async () => {
    operator = reader();
    port = await freePort();
    service = await operator.start(fillPlaceholders(start!, { "npm start": `PORT=${port} npm start` }));
    token = JSON.parse(readFileSync(join(operator.folder, ".data/credentials.json"), "utf8")).tokens.editor;
    writeFileSync(join(operator.folder, "large.bin"), Buffer.alloc(3_000_000, "x"));
  });
  after(async () => {
    await service?.stop();
    operator.cleanUp();
  });

  const PROXIES: [string, StartProxy, string][] = [
    ["Caddy", startCaddy, caddyfile!],
    ["nginx", startNginx, nginxSite!],
  ];
  for (const [name, startProxy, file] of PROXIES) {
    describe(`with ${name}`, () => {
      let proxy: Proxy;

      /** Sends a request for the page's host name to this test's proxy. The sender has the address 127.0.0.9. */
      const curl = (args: string) => {
        const to = `--connect-to ${HOST}:443:127.0.0.1:${proxy.https} --interface 127.0.0.9`;
        return operator.paste(`curl --silent --show-error --cacert ${proxy.authority} ${to} ${args}`);
      };
      const statusOf = (path: string) => curl(`-o /dev/null -w '%{http_code} %{http_version}' https://${HOST}${path}`);

      before(async () => {
        const folder = join(operator.folder, name);
        mkdirSync(folder);
        proxy = await startProxy(folder, file, port);
        await until(() => statusOf("/health/ready").catch(() => ""));
      });
      after(() => proxy?.stop());

      it("passes the page's check over HTTP/2", async () => {
        expect(readFileSync(join(operator.folder, PAGE), "utf8")).to.contain(`curl -s https://${HOST}/health/ready`);
        expect(await statusOf("/health/ready")).to.equal("200 2");
      });

      it("does not serve the metrics", async () => {
        expect((await statusOf("/metrics")).slice(0, 3)).to.equal("404");
        expect((await fetch(`http://127.0.0.1:${port}/metrics`)).status).to.equal(200);
      });

      it("redirects http to https", async () => {
        const printed = await operator.paste(
          `curl -s -o /dev/null -w '%{http_code} %{redirect_url}' -H 'Host: ${HOST}' http://127.0.0.1:${proxy.http}/studio`,
        );
        expect(printed).to.match(new RegExp(`^30[18] https://${HOST}(?::${proxy.https})?/studio$`));
      });

      it("forwards websockets", async () => {
        const options: WebSocket.ClientOptions & { servername: string } = {
          ca: readFileSync(proxy.authority),
          servername: HOST,
          origin: `https://${HOST}`,
          headers: { host: HOST },
        };
        const socket = new WebSocket(`wss://127.0.0.1:${proxy.https}/graphql`, "graphql-transport-ws", options);
        await once(socket, "open");
        socket.send(JSON.stringify({ type: "connection_init", payload: { authToken: token } }));
        const [message] = await once(socket, "message");
        expect(JSON.parse(String(message)).type).to.equal("connection_ack");
        const closed = once(socket, "close");
        socket.close();
        await closed;
      });

      it("forwards uploads and downloads of 3 MB", async () => {
        const files = `https://${HOST}/v1/apps/1/media/files`;
        const auth = `--fail-with-body -H 'Auth-token: ${token}'`;
        const sent = JSON.parse(await curl(`${auth} -F file=@${operator.folder}/large.bin ${files}`));
        await curl(`${auth} -o ${operator.folder}/returned.bin ${files}/${sent.files[0].id}/contents`);
        await operator.paste("cmp large.bin returned.bin");
      });

      it("gives the service the visitor's address, and none that a visitor invents", async () => {
        const printed = await curl(
          `--fail-with-body -H 'Auth-token: ${token}' -H 'X-Forwarded-For: 192.0.2.7' -H 'Content-Type: application/json' -d '{"kind": "api", "name": "${name}"}' https://${HOST}/v1/apps/1/tokens`,
        );
        const made = JSON.parse(printed);
        await curl(
          `-o /dev/null -H 'Auth-token: ${made.token}' -H 'X-Forwarded-For: 192.0.2.7' https://${HOST}/v3/apps/1/actions`,
        );
        const used = await until(async () => {
          const { tokens } = JSON.parse(await curl(`-H 'Auth-token: ${token}' https://${HOST}/v1/apps/1/tokens`));
          const listed = tokens.find((candidate: { name: string }) => candidate.name === name);
          return listed?.lastUsedAddress;
        });
        expect(used).to.equal("127.0.0.9");
      });
    });
  }

  describe("with both proxies", () => {
    it("causes no warning in the log of the service", () => {
      expect(service.log.filter(({ level }) => Number(level) >= 40)).to.deep.equal([]);
    });
  });
});
