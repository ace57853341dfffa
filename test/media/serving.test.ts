/** Tests downloads: ranges, ETags and dispositions. No upload may run code on the service's origin. */
import { expect } from "chai";
import type { TestService } from "../harness/service.js";
import { useSharedService } from "../harness/shared-service.js";
import { type Media, mediaOf, noise, picture } from "./support.js";

const utf8 = (text: string) => new TextEncoder().encode(text);

describe("media: delivery of contents", () => {
  let service: TestService;
  let media: Media;
  before(async () => {
    service = await useSharedService("api");
    media = mediaOf(service);
  });
  after(() => service.stop());

  it("returns ranges, and an error for a range beyond the end", async () => {
    const bytes = noise(1_000);
    const { id } = await media.upload("r.bin", bytes);
    const cases: [string, number, string | null, Uint8Array | null][] = [
      ["bytes=0-9", 206, "bytes 0-9/1000", bytes.subarray(0, 10)],
      ["bytes=990-", 206, "bytes 990-999/1000", bytes.subarray(990)],
      ["bytes=-5", 206, "bytes 995-999/1000", bytes.subarray(995)],
      ["bytes=-5000", 206, "bytes 0-999/1000", bytes],
      ["bytes=999-5000", 206, "bytes 999-999/1000", bytes.subarray(999)],
      ["bytes=1000-", 416, "bytes */1000", null],
      ["bytes=-0", 416, "bytes */1000", null],
      ["bytes=9-1", 200, null, bytes],
      ["bytes=0-1,5-6", 200, null, bytes],
      ["lines=0-1", 200, null, bytes],
      ["bytes=", 200, null, bytes],
    ];
    for (const [range, http, contentRange, part] of cases) {
      const answer = await media.contents(id, "", { range });
      expect([range, answer.status, answer.headers.get("content-range")]).to.deep.equal([range, http, contentRange]);
      const received = Buffer.from(await answer.arrayBuffer());
      if (part) expect(received.equals(part), range).to.equal(true);
      else expect(JSON.parse(String(received)).status).to.equal("RANGE_NOT_SATISFIABLE");
    }
  });

  it("returns no bytes if a condition holds, and a range only of an unchanged file", async () => {
    const { id, checksum } = await media.upload("c.txt", "contents");
    const tag = `"${checksum}"`;
    for (const condition of [tag, `W/${tag}`, `"x", ${tag}`, "*"]) {
      const answer = await media.contents(id, "", { "if-none-match": condition });
      expect([condition, answer.status, await answer.text()]).to.deep.equal([condition, 304, ""]);
    }
    expect((await media.contents(id, "", { "if-none-match": '"x"' })).status).to.equal(200);
    expect((await media.contents(id, "", { range: "bytes=0-1", "if-range": tag })).status).to.equal(206);
    for (const other of ['"x"', `W/${tag}`, `"x", ${tag}`, "*", new Date().toUTCString()])
      expect((await media.contents(id, "", { range: "bytes=0-1", "if-range": other })).status, other).to.equal(200);
    expect((await media.contents(id)).headers.get("etag")).to.equal(tag);
    const head = await service.rest("HEAD", `${media.root}/files/${id}/contents`);
    expect([head.http, head.headers.get("content-length"), head.body]).to.deep.equal([200, "8", ""]);
  });

  it("keeps shared caches from contents with access rules", async () => {
    const { id } = await media.upload("p.txt", "x");
    const cache = async () => (await media.contents(id)).headers.get("cache-control");
    expect(await cache()).to.equal("private, no-cache");
    await media.rest("PUT", `/files/${id}/accessRules`, [{ type: ["read"], allow: "all" }]);
    expect(await cache()).to.equal("public, no-cache");
    await media.rest("PUT", `/files/${id}/accessRules`, [{ type: ["read"], allow: "loggedIn" }]);
    expect(await cache()).to.equal("private, no-cache");
  });

  const HTML = "<!doctype html><script>parent.pwned = 1</script>";
  const SVG = `<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"><script>alert(1)</script></svg>`;
  const RUNNABLE_UPLOADS: [name: string, bytes: string | Uint8Array, stored: string, sent: string][] = [
    ["page.html", HTML, "text/html", "application/octet-stream"],
    ["page.png", HTML, "text/html", "application/octet-stream"],
    ["comment.txt", `<!-- x -->\n<HTML onload=alert(1)>`, "text/html", "application/octet-stream"],
    ["picture.svg", SVG, "image/svg+xml", "image/svg+xml"],
    ["picture.png", `<?xml version="1.0"?>\n<!-- x -->${SVG}`, "image/svg+xml", "image/svg+xml"],
    [
      "feed.xml",
      `<?xml version="1.0"?><html:script xmlns:html="http://www.w3.org/1999/xhtml"/>`,
      "application/xml",
      "application/octet-stream",
    ],
    [
      "a.pdf",
      "%PDF-1.7\n1 0 obj<</OpenAction<</S/JavaScript/JS(app.alert(1))>>>>",
      "application/pdf",
      "application/octet-stream",
    ],
    [
      "utf16.txt",
      new Uint8Array([0xff, 0xfe, ...Buffer.from("<html><script>1</script>", "utf16le")]),
      "text/html",
      "application/octet-stream",
    ],
  ];
  for (const [name, bytes, stored, sent] of RUNNABLE_UPLOADS) {
    it(`saves ${name} that is ${stored} instead of showing it`, async () => {
      const file = await media.upload(name, typeof bytes === "string" ? bytes : new Uint8Array(bytes));
      expect(file.contentType).to.equal(stored);
      const { headers } = await media.contents(file.id);
      expect(headers.get("content-type")).to.equal(sent);
      expect(headers.get("content-disposition")).to.match(/^attachment; /);
    });
  }

  it("sends every kind of contents with headers that run nothing, in any context", async () => {
    const jpeg = new Uint8Array(await picture(20, 20).jpeg().toBuffer());
    const script = utf8("alert(1)");
    for (const [name, bytes] of [
      ["a.js", script],
      ["a.jpg", jpeg],
      ["a.html", utf8(HTML)],
      ["a", noise(50)],
    ] as const) {
      const { id } = await media.upload(name, bytes);
      for (const query of ["", "?download", "?width=10", "?size=thumbnail"]) {
        const { headers, status } = await media.contents(id, query);
        if (status !== 200) continue;
        expect(headers.get("x-content-type-options")).to.equal("nosniff");
        expect(headers.get("content-security-policy"))
          .to.match(/^sandbox; default-src 'none';/)
          .and.not.include("script");
        expect(headers.get("content-type")).not.to.match(/javascript|html|xml$|css/);
      }
    }
  });

  it("shows pictures, sound, video and text, and saves them on request", async () => {
    const shown = [
      ["a.txt", utf8("text"), "text/plain; charset=utf-8"],
      ["a.jpg", new Uint8Array(await picture(20, 20).jpeg().toBuffer()), "image/jpeg"],
      ["a.mp3", new Uint8Array([0x49, 0x44, 0x33, 4, 0, 0, 0, 0, 0, 0, 0xff, 0xfb, 0x90, 0x64]), "audio/mpeg"],
    ] as const;
    for (const [name, bytes, type] of shown) {
      const { id } = await media.upload(name, bytes);
      const { headers } = await media.contents(id);
      expect([headers.get("content-type"), headers.get("content-disposition")]).to.deep.equal([
        type,
        `inline; filename="${name}"; filename*=UTF-8''${name}`,
      ]);
      expect((await media.contents(id, "?download")).headers.get("content-disposition")).to.match(/^attachment/);
    }
  });

  it("lets no name break its header", async () => {
    const name = `q"; filename=x.html; "ü 日本 %41'.txt`;
    const { id } = await media.upload("a.txt", "x", { name });
    const disposition = (await media.contents(id)).headers.get("content-disposition")!;
    expect(disposition.match(/^inline; filename="[^"\\]*"; filename\*=UTF-8''([\w!#$&+.^`|~%-]*)$/)?.[1]).to.equal(
      encodeURIComponent(name).replace(/'/g, "%27"),
    );
  });

  it("returns pictures of another width, format and quality, and rejects invalid or large values", async () => {
    const { id, size } = await media.upload("wide.png", new Uint8Array(await picture(800, 400).png().toBuffer()));
    expect(size).to.deep.equal([800, 400]);
    const answer = await media.contents(id, "?width=200&format=webp&quality=50");
    expect(answer.headers.get("content-type")).to.equal("image/webp");
    const sharp = (await import("sharp")).default;
    const made = await sharp(Buffer.from(await answer.arrayBuffer())).metadata();
    expect([made.format, made.width, made.height]).to.deep.equal(["webp", 200, 100]);
    const again = await media.contents(id, "?width=200&format=webp&quality=50", {
      "if-none-match": answer.headers.get("etag")!,
    });
    expect(again.status).to.equal(304);
    expect((await sharp(await media.bytes(id, "?width=5000")).metadata()).width, "never wider").to.equal(800);
    expect((await sharp(await media.bytes(id, "?size=thumbnail")).metadata()).width).to.equal(320);
    for (const query of [
      "?width=0",
      "?width=8193",
      "?width=x",
      "?format=gif",
      "?format=svg",
      "?quality=101",
      "?width=1&width=2",
    ]) {
      expect([query, (await media.contents(id, query)).status]).to.deep.equal([query, 400]);
    }
    const text = await media.upload("no.txt", "x");
    expect((await media.contents(text.id, "?width=10")).status).to.equal(400);
    expect((await media.contents(text.id, "?size=thumbnail")).status).to.equal(404);
  });
});
