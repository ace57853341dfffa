/** Uploads more than a hundred malicious files: none executes, escapes its folder, keeps a picture's metadata, or ends the process. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import type { Browser, Page } from "puppeteer";
import { rows } from "../../src/data/database.js";
import { CAMERA_MAKER, hostileMatrix } from "../attacks/hostile-matrix.js";
import { childProcesses } from "../harness/global.js";
import { type ServiceProcess, startProcess } from "../harness/process.js";
import { startTestService, type TestService } from "../harness/service.js";
import { filesUnder, type Media, mediaOf } from "../media/support.js";
import { launchChromium } from "../web/chromium.js";

/** Maximum time of the upload of one file in milliseconds: more than the 60 s that the decoder of pictures may take. */
const FILE_LIMIT_MS = 90_000;
const FILES_PER_LOAD = 20;
const LOAD_WAIT_MS = 2_000;
/** Globals of a page that the test's code uses. */
interface PageGlobals {
  document: { title: string; body: { append(element: object): void }; createElement(tag: string): object };
  navigator: { serviceWorker: { register(url: string): Promise<unknown> } };
  setTimeout(done: () => void, ms: number): void;
}
/** Content types that a browser would execute, or show as a document of the service's origin. */
const ACTIVE_CONTENT_TYPE = /html|script|xml(?!$)|svg|pdf|wasm|json|css|multipart/;

/** Sends the form as raw bytes, because a client library would change the file's name. */
async function sendRaw(service: TestService, root: string, name: string, bytes: Uint8Array, type: string) {
  const quoted = name.replaceAll('"', "%22").replaceAll("\r", "%0D").replaceAll("\n", "%0A");
  const head = `--cut\r\nContent-Disposition: form-data; name="file"; filename="${quoted}"\r\nContent-Type: ${type}\r\n\r\n`;
  const body = Buffer.concat([Buffer.from(head), bytes, Buffer.from("\r\n--cut--\r\n")]);
  const headers = { "auth-token": service.tokens.editor, "content-type": "multipart/form-data; boundary=cut" };
  const response = await fetch(`${service.url}${root}/files`, { method: "POST", headers, body });
  return { http: response.status, body: (await response.json()) as { error: string; files: { id: number }[] } };
}

describe("hundreds of malicious files", () => {
  let service: TestService;
  let media: Media;
  let browser: Browser;
  before(async () => {
    [service, browser] = await Promise.all([startTestService({ ROLES: "api" }), launchChromium()]);
    media = mediaOf(service);
  });
  after(async () => {
    await browser.close();
    await service.stop();
  });

  it("are stored under the service's own names or rejected with an explanation, and leave no process and no other file", async () => {
    const files = await hostileMatrix();
    const answers: Record<number, number> = {};
    const folderId = await media.folder("open");
    await media.rest("PUT", `/folders/${folderId}/accessRules`, [{ type: ["read"], allow: "all" }]);
    for (const { name, bytes, type = "application/octet-stream" } of files) {
      const startedAt = performance.now();
      const { http, body } = await sendRaw(service, media.root, name, bytes, type);
      answers[http] = (answers[http] ?? 0) + 1;
      expect([201, 400], `${name}: ${JSON.stringify(body)}`).to.include(http);
      expect(performance.now() - startedAt, name).to.be.below(FILE_LIMIT_MS);
      if (http === 400) expect(body.error, name).to.match(/but cannot be read:|form/);
      else await media.rest("PUT", `/files/${body.files[0]!.id}`, { folderId });
    }
    process.stdout.write(`      ${files.length} files: ${JSON.stringify(answers)}\n`);
    expect(files.length).to.be.at.least(100);
    expect(childProcesses().filter((line) => line.includes("pictures/child"))).to.deep.equal([]);
    const stored = filesUnder(join(service.dataDir, "media")).map((path) =>
      path.slice(join(service.dataDir, "media").length),
    );
    const keys = await rows<{ key: string }>(service.db, "SELECT key FROM media_blob WHERE held_until IS NULL");
    expect(stored.map((path) => path.slice(-32)).sort()).to.deep.equal(keys.map(({ key }) => key).sort());
    expect(stored.filter((path) => !/^\/[0-9a-f]{16}\/[0-9a-f]{2}\/[0-9a-f]{32}$/.test(path))).to.deep.equal([]);
    expect((await service.rest("GET", "/health/ready")).http).to.equal(200);
  }).timeout(900_000);

  it("are sent with types that no browser runs, under safe names, without metadata of pictures", async () => {
    const { files } = (await media.rest("GET", "/files?limit=1000")).body;
    for (const { id, name, size, contentType } of files) {
      expect(name, JSON.stringify(name)).to.match(/^[^/\\\p{Cc}\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]{1,255}$/u);
      expect([".", "..", ""]).to.not.include(name);
      const response = await media.contents(id);
      const bytes = Buffer.from(await response.arrayBuffer());
      const header = (key: string) => response.headers.get(key) ?? "";
      expect(header("x-content-type-options"), name).to.equal("nosniff");
      expect(header("content-security-policy"), name).to.contain("sandbox;").and.contain("default-src 'none'");
      expect(header("content-disposition"), name).to.match(
        /^(inline|attachment); filename="[^"\r\n]*"; filename\*=UTF-8''[\w%.~!$&+^`|-]*$/,
      );
      const sentAs = header("content-type");
      if (ACTIVE_CONTENT_TYPE.test(sentAs))
        expect([sentAs, header("content-disposition").slice(0, 10)], name).to.deep.equal([
          "image/svg+xml",
          "attachment",
        ]);
      if (header("content-disposition").startsWith("inline") && contentType.startsWith("image/"))
        expect(size, name).to.be.an("array");
      if (size !== null) expect(bytes.includes(CAMERA_MAKER), `${name} tells its maker`).to.equal(false);
    }
  }).timeout(120_000);

  /** Loads all files into a page of the service's own origin, in each way in which a page can load a file. Returns the outcomes. */
  async function loadAsEachElement(page: Page, urls: readonly string[]) {
    return page.evaluate(
      async (fileUrls, waitMs) => {
        const { document, navigator, setTimeout } = globalThis as unknown as PageGlobals;
        const load = (tag: string, fields: object) =>
          new Promise<void>((done) => {
            const element = Object.assign(document.createElement(tag), fields, { onload: done, onerror: done });
            document.body.append(element);
            // A frame receives no event for a file that the browser downloads, so the code stops waiting after a while.
            setTimeout(done, waitMs);
          });
        const workers = await Promise.all(
          fileUrls.map(async (url) => {
            const loads: [string, object][] = [
              ["script", { src: url }],
              ["script", { src: url, type: "module" }],
              ["img", { src: url }],
              ["link", { rel: "stylesheet", href: url }],
              ["iframe", { src: url }],
              ["object", { data: url }],
              ["embed", { src: url }],
            ];
            await Promise.all(loads.map(([tag, fields]) => load(tag, fields)));
            return navigator.serviceWorker.register(url).then(
              () => "registered",
              () => "refused",
            );
          }),
        );
        const { pwned = null } = globalThis as { pwned?: unknown };
        return { pwned, title: document.title, workers: [...new Set(workers)] };
      },
      urls,
      LOAD_WAIT_MS,
    );
  }

  for (const lines of ["with Studio's Content-Security-Policy", "without a Content-Security-Policy of the page"]) {
    it(`run nothing in a page that loads them as a script, a sheet, a frame, a picture or a worker, ${lines}`, async () => {
      const { files } = (await media.rest("GET", "/files?limit=1000")).body;
      expect(files.length).to.be.at.least(100);
      for (let first = 0; first < files.length; first += FILES_PER_LOAD) {
        const group: { url: string; name: string }[] = files.slice(first, first + FILES_PER_LOAD);
        const page = await browser.newPage();
        await page.setBypassCSP(lines !== "with Studio's Content-Security-Policy");
        await page.goto(`${service.url}/studio`);
        const { title, ...seen } = await loadAsEachElement(
          page,
          group.map(({ url }) => url),
        );
        expect(seen, group.map(({ name }) => name).join()).to.deep.equal({ pwned: null, workers: ["refused"] });
        expect(title, group.map(({ name }) => name).join()).to.not.equal("pwned");
        await page.close();
      }
    }).timeout(120_000);
  }

  it("neither set a title nor get the service's origin in a browser that opens them", async () => {
    const { files } = (await media.rest("GET", "/files?limit=1000")).body;
    const page = await browser.newPage();
    for (const { url, name } of files) {
      await page.goto("about:blank");
      await page.goto(url).catch(() => undefined);
      expect(await page.title(), name).to.not.equal("pwned");
      expect(await page.evaluate("String(self.origin)").catch(() => "none"), name).to.not.equal(service.url);
    }
    await page.close();
  }).timeout(120_000);
});

describe("the memory of a service that receives malicious files", () => {
  it("does not grow: the process that decodes them is replaced", async () => {
    const process_: ServiceProcess = startProcess({ ROLES: "api" });
    const url = await process_.ready();
    const { appId, tokens } = process_.credentials();
    const readMegabytes = () =>
      Number(/RssAnon:\s+(\d+) kB/.exec(readFileSync(`/proc/${process_.pid}/status`, "utf8"))![1]) / 1024;
    const send = async (name: string, bytes: Uint8Array<ArrayBuffer>) => {
      const form = new FormData();
      form.append("file", new Blob([bytes]), name);
      await (
        await fetch(`${url}/v1/apps/${appId}/media/files`, {
          method: "POST",
          headers: { "auth-token": tokens.editor },
          body: form,
        })
      ).text();
    };
    try {
      const bombs = (await hostileMatrix()).filter(({ name }) =>
        /^(pixels|edge|line|nothing|interlaced|profile|text|chunks|bomb)\./.test(name),
      );
      for (const { name, bytes } of bombs.slice(0, 3)) await send(name, bytes);
      const before = readMegabytes();
      for (let turn = 0; turn < 3; turn += 1) for (const { name, bytes } of bombs) await send(name, bytes);
      process.stdout.write(`      ${(readMegabytes() - before).toFixed(1)} MB after ${3 * bombs.length} bombs\n`);
      expect(readMegabytes() - before).to.be.below(100);
    } finally {
      await process_.clean();
    }
  }).timeout(900_000);
});
