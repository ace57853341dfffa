/** Tests malicious files. No file may end the process, leave temporary files behind, or run code in a viewer. */
import { expect } from "chai";
import sharp from "sharp";
import { childProcesses } from "../harness/global.js";
import { sampleOf } from "../harness/samples.js";
import { startTestService, type TestService } from "../harness/service.js";
import { type Media, mediaOf } from "../media/support.js";
import { launchChromium } from "../web/chromium.js";
import { type HostileFile, hostileFiles } from "./hostile-files.js";

/** Files that make a decoder reach its time limit. `npm test` sends one of them, and test/long sends all. */
const SLOW_FILES = ["bomb.png", "interlaced.png", "frames.gif"];

describe("malicious files", () => {
  let service: TestService;
  let media: Media;
  let files: HostileFile[];
  before(async () => {
    service = await startTestService({ ROLES: "api" });
    media = mediaOf(service);
    files = await hostileFiles();
  });
  after(() => service.stop());

  it("are stored or rejected with an explanation, in limited time, and leave no process", async () => {
    const slow = files.filter(({ name }) => sampleOf(SLOW_FILES, 0, 3).includes(name));
    const others = files.filter(({ name }) => !SLOW_FILES.includes(name));
    for (const { name, bytes } of [...sampleOf(others, 0, 4), ...slow]) {
      const { http, body } = await media.send([{ name, bytes }]);
      expect([201, 400], `${name}: ${JSON.stringify(body)}`).to.include(http);
      if (http === 400) expect(body.error, name).to.match(/but cannot be read:/);
      // A picture that cannot be decoded has no stored size. Browsers download it instead of showing it.
      else if (/bomb|huge|largest|heic|polyglot/.test(name)) {
        const [file] = body.files;
        expect([name, file.size, file.thumbnail]).to.deep.equal([name, null, null]);
        expect((await media.contents(file.id)).headers.get("content-disposition"), name).to.match(/^attachment/);
      }
    }
    expect((await service.rest("GET", "/health/ready")).http).to.equal(200);
    expect(childProcesses().filter((line) => line.includes("pictures/child"))).to.deep.equal([]);
  }).timeout(180_000);

  it("run nothing in a browser that opens, frames, shows or loads them as a script, even if everyone may read them", async () => {
    const folderId = await media.folder("open");
    await media.rest("PUT", `/folders/${folderId}/accessRules`, [{ type: ["read"], allow: "all" }]);
    const names = /svg|polyglot|page|comment|mis/;
    const sent = files.filter(({ name }) => names.test(name));
    const urls: string[] = [];
    for (const { name, bytes } of sent) {
      const { http, body } = await media.send([{ name, bytes }], { folderId: String(folderId) });
      if (http === 201) urls.push(body.files[0].url);
    }
    expect(urls.length).to.be.greaterThan(5);
    const browser = await launchChromium();
    try {
      const page = await browser.newPage();
      await page.goto(`${service.url}/studio`);
      for (const url of urls) {
        const outcome = await page.evaluate(`(async () => {
          const url = ${JSON.stringify(url)};
          const load = (tag, fields) => new Promise((done) => {
            const element = Object.assign(document.createElement(tag), fields, { onload: done, onerror: done });
            document.body.append(element);
          });
          await Promise.all([load("script", { src: url }), load("script", { src: url, type: "module" }), load("img", { src: url })]);
          const worker = await navigator.serviceWorker.register(url).then(() => "registered", () => "refused");
          return [window.pwned ?? null, worker];
        })()`);
        expect([url, outcome]).to.deep.equal([url, [null, "refused"]]);
        const opened = await browser.newPage();
        await opened.goto(url).catch(() => undefined);
        expect([await opened.title(), await opened.evaluate("String(self.origin)").catch(() => "none")]).to.satisfy(
          ([title, origin]: string[]) => title !== "pwned" && origin !== service.url,
        );
        await opened.close();
      }
    } finally {
      await browser.close();
    }
  });

  it("lose location, device and texts, and keep their pixels, colours and orientation", async () => {
    const secret = "Somebody's camera";
    const raw = { width: 120, height: 80, channels: 3 as const };
    const pixels = Buffer.from(Array.from({ length: raw.width * raw.height * 3 }, (_, at) => (at * 7) % 256));
    const exif = {
      IFD0: { Make: secret, Software: secret },
      IFD3: { GPSLatitudeRef: "N", GPSLatitude: "51/1 30/1 0/1" },
    };
    for (const format of ["jpeg", "png", "webp", "avif", "tiff"] as const) {
      const source = sharp(pixels, { raw })
        .withExif(exif)
        .withXmp(`<x:xmpmeta xmlns:x="adobe:ns:meta/"><a>${secret}</a></x:xmpmeta>`);
      const before = await source.withMetadata({ orientation: 6 }).toFormat(format, { quality: 90 }).toBuffer();
      expect(before.includes(secret) || format === "tiff", format).to.equal(true);
      const file = await media.upload(`p.${format}`, new Uint8Array(before));
      const after = await media.bytes(file.id);
      expect(after.includes(secret), `${format} tells`).to.equal(false);
      const location = Buffer.from([51, 0, 0, 0, 1, 0, 0, 0, 30]);
      expect(after.includes(location), `${format} contains the location`).to.equal(false);
      const [was, is] = await Promise.all(
        [sharp(before), sharp(after)].map((picture) => picture.autoOrient().raw().toBuffer()),
      );
      expect(is!.equals(was!), `${format}: its pixels, upright`).to.equal(true);
      expect(file.size, format).to.deep.equal([80, 120]);
    }
  });
});
