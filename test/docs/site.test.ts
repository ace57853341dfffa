/**
 * Tests the documentation as web pages and as texts: each link works, the content security policy is strict, and examples contain the
 * reader's address.
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import Fastify, { type FastifyInstance } from "fastify";
import MiniSearch from "minisearch";
import { pino } from "pino";
import { DocsLibrary } from "../../src/api/docs/library.js";
import { createHeadingId } from "../../src/api/docs/markdown.js";
import { registerDocs } from "../../src/api/docs/routes.js";
import { createErrorReply } from "../../src/api/error-reply.js";
import { registerWebAssets } from "../../src/api/web-assets.js";
import { PAGES } from "./pages.js";

const BASE = "http://127.0.0.1:4000";

function startSite(options: { publicUrl?: string; root?: string } = {}): FastifyInstance {
  const { publicUrl = null, root } = options;
  const app = Fastify({ routerOptions: { ignoreTrailingSlash: true } });
  const base = publicUrl === null ? "" : new URL(publicUrl).pathname.replace(/\/$/, "");
  const pages = registerWebAssets(app, { base });
  app.setErrorHandler((error, _request, reply) => {
    const { http, body } = createErrorReply(error, pino({ level: "silent" }));
    return reply.code(http).send(body);
  });
  registerDocs(app, { pages, baseUrl: publicUrl ?? BASE, publicUrl, ...(root !== undefined && { root }) });
  return app;
}

const get = (app: FastifyInstance, url: string, headers: Record<string, string> = {}) =>
  app.inject({ url, headers: { host: "docs.example:8080", ...headers } });

const attributes = (html: string, name: "href" | "src") =>
  [...html.matchAll(new RegExp(`\\s${name}="([^"]*)"`, "g"))].map(([, value]) => value!);

function headingsOf(markdown: string): Set<string> {
  const ids = new Set<string>();
  for (const [, heading] of markdown.replaceAll(/^```[\s\S]*?^```/gm, "").matchAll(/^#{1,6} (.+)$/gm)) {
    const id = createHeadingId(heading!.replaceAll(/\[([^[\]]*)\]\([^()]*\)/g, "$1").replaceAll("`", ""));
    let candidate = id;
    for (let number = 1; ids.has(candidate); number += 1) candidate = `${id}-${number}`;
    ids.add(candidate);
  }
  return ids;
}

/** Counts the calls of MiniSearch's internal method `termResults`, which reads the sections of one word from a search index. */
function countIndexReads(): { index: { reads: number }; restore: () => void } {
  const prototype = MiniSearch.prototype as unknown as { termResults: (...parameters: unknown[]) => unknown };
  const { termResults } = prototype;
  const index = { reads: 0 };
  prototype.termResults = function (...parameters) {
    index.reads += 1;
    return termResults.apply(this, parameters);
  };
  const restore = () => {
    prototype.termResults = termResults;
  };
  return { index, restore };
}

describe("the pages of the documentation", () => {
  let site: FastifyInstance;
  const folders: string[] = [];

  before(() => {
    site = startSite();
  });
  after(async () => {
    await site.close();
    for (const folder of folders) rmSync(folder, { recursive: true, force: true });
  });

  function siteOf(files: Record<string, string>): FastifyInstance {
    const root = mkdtempSync(join(tmpdir(), "svc-docs-site-"));
    folders.push(root);
    mkdirSync(join(root, "docs/pictures"), { recursive: true });
    for (const [file, text] of Object.entries(files)) writeFileSync(join(root, file), text);
    return startSite({ root });
  }

  it("have no dead link, picture, script or style from any page that the index reaches", async () => {
    const seen = new Map<string, string>();
    const faulty: string[] = [];
    const follow = async (address: string, from: string): Promise<void> => {
      const url = new URL(address, new URL(from, "http://docs.example:8080"));
      if (url.host !== "docs.example:8080" || /^\/(?:studio|graphql|apps|$)/.test(url.pathname)) return;
      if (!seen.has(url.pathname)) {
        const reply = await get(site, url.pathname + url.search);
        seen.set(url.pathname, reply.body);
        if (reply.statusCode !== 200) faulty.push(`${from}: ${address} is ${reply.statusCode}`);
        if (reply.headers["content-type"] === "text/html; charset=utf-8") {
          for (const link of [...attributes(reply.body, "href"), ...attributes(reply.body, "src")]) {
            if (!link.startsWith("data:")) await follow(link.replaceAll("&amp;", "&"), url.pathname);
          }
        }
      }
      if (url.hash !== "" && !seen.get(url.pathname)!.includes(`id="${decodeURIComponent(url.hash.slice(1))}"`)) {
        faulty.push(`${from}: ${address} has no such heading`);
      }
    };
    await follow("/docs/", "/");
    expect(faulty).to.deep.equal([]);
    const expected = PAGES.filter((page) => page.startsWith("docs/") && page !== "docs/README.md");
    expect([...seen.keys()]).to.include.members(expected.map((page) => `/${page.slice(0, -".md".length)}`));
    expect([...seen.keys()]).to.include.members(expected.map((page) => `/${page}`));
  });

  it("allow no inline script or style, no frame and nothing from other hosts", async () => {
    for (const address of ["/docs/", "/docs/reference/actions", "/docs/search?q=run"]) {
      const { headers, body } = await get(site, address);
      const policy = String(headers["content-security-policy"]);
      expect(policy).to.contain("default-src 'none'; script-src 'self'; style-src 'self';");
      expect(policy)
        .to.contain("frame-ancestors 'none'")
        .and.not.to.match(/unsafe|https?:|\*/);
      expect(headers["x-content-type-options"]).to.equal("nosniff");
      expect(headers["x-frame-options"]).to.equal("DENY");
      expect(body).not.to.match(/<script(?![^>]*\ssrc=)|<style|\sstyle=|\son\w+=/);
    }
  });

  it("show the address of the request in every example, or PUBLIC_URL", async () => {
    for (const address of ["/docs/reference/api", "/docs/reference/api.md", "/docs/introduction", "/llms-full.txt"]) {
      const { body } = await get(site, address);
      expect(body, address)
        .to.contain("http://docs.example:8080")
        .and.not.to.match(/:\/\/(?:127\.0\.0\.1|localhost):4000/);
    }
    const proxied = startSite({ publicUrl: "https://example.com/actions" });
    const page = await get(proxied, "/docs/reference/api");
    expect(page.body)
      .to.contain("https://example.com/actions/v1/apps")
      .and.contain('href="/actions/docs/reference/actions"');
    expect((await get(proxied, "/llms.txt")).body).to.contain(
      "(https://example.com/actions/docs/reference/actions.md)",
    );
    await proxied.close();
  });

  it("ignore an invalid Host header", async () => {
    for (const host of [
      '"><script>x</script>',
      "a b",
      "evil/..",
      "a@b",
      "[::1",
      `${"x".repeat(20)}%0d`,
      "x".repeat(262),
    ]) {
      const { body } = await get(site, "/docs/reference/api", { host });
      expect(body, host).to.contain(`${BASE}/v1/apps`).and.not.to.contain("<script>x");
    }
  });

  it("are sent again only if they changed", async () => {
    for (const address of [
      "/docs/",
      "/docs/reference/actions",
      "/docs/reference/actions.md",
      "/llms.txt",
      "/llms-full.txt",
      "/SECURITY.md",
    ]) {
      const first = await get(site, address);
      const tag = String(first.headers["etag"]);
      expect(tag).to.match(/^"[\w-]{22}"$/);
      const again = await get(site, address, { "if-none-match": tag });
      expect([again.statusCode, again.body], address).to.deep.equal([304, ""]);
      expect((await get(site, address, { "if-none-match": '"other"' })).statusCode).to.equal(200);
    }
  });

  it("are available as Markdown, with absolute links to Markdown and without the marks of the tests", async () => {
    for (const address of ["/docs/README.md", "/docs.md", "/docs/index.md"]) {
      const reply = await get(site, address);
      expect(reply.headers["content-type"]).to.equal("text/markdown; charset=utf-8");
      expect(reply.body)
        .to.match(/^# Documentation/)
        .and.contain("](http://docs.example:8080/docs/reference/actions.md)");
    }
    const { body } = await get(site, "/docs/introduction.md");
    expect(body)
      .to.match(/^# Svc App Actions/)
      .and.not.to.contain("<!-- not run");
    expect(body).to.contain("](http://docs.example:8080/docs/pictures/studio.png)");
  });

  it("have only absolute links that can be followed, in every text for programs", async () => {
    const texts = [
      "/llms.txt",
      "/llms-full.txt",
      ...PAGES.map((page) => (page.startsWith("docs/") ? `/${page}` : `/docs/${page.toLowerCase()}`)),
    ];
    const wrong: string[] = [];
    const known = new Map<string, string | null>();
    for (const address of texts) {
      const reply = await get(site, address.replace("/docs/readme.md", "/docs/introduction.md"));
      expect(reply.statusCode, address).to.equal(200);
      const prose = reply.body.replaceAll(/^```[\s\S]*?^```/gm, "");
      for (const [, link] of prose.matchAll(/\]\(([^()\s]+)\)/g)) {
        const url = URL.parse(link!);
        if (url === null) wrong.push(`${address}: ${link} is not absolute`);
        if (url?.host !== "docs.example:8080" || /^\/(?:studio|graphql|apps|v1|client|$)/.test(url.pathname)) continue;
        if (!known.has(url.pathname)) {
          const target = await get(site, url.pathname);
          known.set(url.pathname, target.statusCode === 200 ? target.body : null);
        }
        const text = known.get(url.pathname)!;
        if (text === null) wrong.push(`${address}: ${link} is not found`);
        else if (url.hash !== "" && !headingsOf(text).has(url.hash.slice(1)))
          wrong.push(`${address}: ${link} has no such heading`);
      }
    }
    expect(wrong).to.deep.equal([]);
    const { body } = await get(site, "/docs/start/example.md");
    expect(body).to.contain(
      "The source of the example app is in examples/bookings (examples/bookings in the installation's folder)",
    );
  });

  it("are listed in llms.txt, and complete in llms-full.txt but for the history of the project", async () => {
    const [short, full] = [await get(site, "/llms.txt"), await get(site, "/llms-full.txt")];
    expect(short.body).to.match(/^# Svc App Actions\n\n> /);
    expect(full.body).to.contain("## How do I …");
    for (const page of PAGES.filter((name) => name.startsWith("docs/") && name !== "docs/README.md")) {
      expect(short.body).to.contain(`(http://docs.example:8080/${page}): `);
      const isLeftOut = page === "docs/internals/adr.md";
      const start = `<!-- http://docs.example:8080/${page.slice(0, -".md".length)} -->`;
      expect(full.body.includes(start), page).to.equal(!isLeftOut);
    }
    for (const name of ["changelog", "benchmarks", "contributing"]) {
      expect(short.body).to.contain(`(http://docs.example:8080/docs/${name}.md): `);
      expect(full.body).not.to.contain(`<!-- http://docs.example:8080/docs/${name} -->`);
    }
    for (const [, link] of short.body.matchAll(/\(http:\/\/docs\.example:8080(\/docs\/[^)]+)\)/g)) {
      expect((await get(site, link!)).statusCode, link).to.equal(200);
    }
  });

  it("are found by their words, best first, with the section's address", async () => {
    const { body } = await get(site, "/docs/search?q=idempotency+key");
    const [first] = attributes(body.slice(body.indexOf('<ol class="results">')), "href");
    expect(first).to.match(/^\/docs\/[a-z-]+\/[a-z-]+#[\w-]+$/);
    expect((await get(site, "/docs/search?q=zzzzqqqq")).body).to.contain("No section contains these words.");
    for (const query of ["", "?q=", "?q=a&q=b", `?q=${"x%20".repeat(5_000)}`, "?q=%3Cscript%3Ealert(1)%3C/script%3E"]) {
      const reply = await get(site, `/docs/search${query}`);
      expect(reply.statusCode, query.slice(0, 20)).to.equal(200);
      expect(reply.body).not.to.contain("<script>alert");
    }
  });

  it("are searched with at most six different words, of which those with under three letters find no longer words", async () => {
    const wordList = Array.from({ length: 300 }, (_, number) => `station${number}`).join(" ");
    const large = siteOf({
      "docs/README.md": `# Docs\n\n**All**: ${wordList}\n`,
      "docs/few.md": "# Few\n\nA plain text\n",
    });
    const { index, restore } = countIndexReads();
    for (const [query, maximum] of [
      ["s+".repeat(12), 1],
      ["s-".repeat(90), 1],
      [`${"s+".repeat(11)}zqxj`, 2],
      ["st+s+a+t+i+o+n+plain", 6],
      ["stat+stati+statio+station+station1+station2+station3", 6 + 5 * 300],
    ] as const) {
      index.reads = 0;
      await get(large, `/docs/search?q=${query}`);
      expect(index.reads, query).to.be.within(1, maximum);
    }
    const found = (query: string) =>
      get(large, `/docs/search?q=${query}`).then(({ body }) => body.includes("/docs/few"));
    expect([await found("pla"), await found("pla+zqxj"), await found("a+text"), await found("pl")]).to.deep.equal([
      true,
      true,
      true,
      false,
    ]);
    expect(await found("station1+plain")).to.equal(true);
    expect(await found("station1+station2")).to.equal(false);
    restore();
    await large.close();
  });

  it("are joined once for llms-full.txt, whatever address the readers use", async () => {
    const small = siteOf({
      "docs/README.md": "# Docs\n\n**All**: [one](one.md)\n",
      "docs/one.md": "# One\n\n[All](README.md)\n",
    });
    const first = await get(small, "/llms-full.txt");
    expect(first.body).to.contain("[All](http://docs.example:8080/docs/README.md)");
    const { resolveLink } = DocsLibrary.prototype;
    let count = 0;
    DocsLibrary.prototype.resolveLink = function (...parameters) {
      count += 1;
      return resolveLink.apply(this, parameters);
    };
    try {
      expect((await get(small, "/llms-full.txt")).body).to.equal(first.body);
      expect((await get(small, "/docs/one.md", { host: "other.example" })).body).to.contain(
        "http://other.example/docs/",
      );
      const other = await get(small, "/llms-full.txt", { host: "other.example" });
      expect(other.body).to.equal(first.body.replaceAll("docs.example:8080", "other.example"));
      expect(other.headers["etag"]).not.to.equal(first.headers["etag"]);
    } finally {
      DocsLibrary.prototype.resolveLink = resolveLink;
    }
    expect(count).to.equal(0);
    await small.close();
  });

  it("redirect from addresses without a section to the current pages", async () => {
    for (const page of PAGES.filter((name) => name.split("/").length === 3)) {
      const [, section, file] = page.split("/");
      for (const [old, now] of [
        [`/docs/${file}`, `/docs/${section}/${file}`],
        [`/docs/${file!.slice(0, -3)}`, `/docs/${section}/${file!.slice(0, -3)}`],
      ]) {
        const { statusCode, headers } = await get(site, old!);
        expect([statusCode, headers["location"]], old).to.deep.equal([301, now]);
      }
    }
    const proxied = startSite({ publicUrl: "https://example.com/actions" });
    expect((await get(proxied, "/docs/queue")).headers["location"]).to.equal("/actions/docs/operate/queue");
    await proxied.close();
  });

  it("show the sections in the navigation, with the section of the page open", async () => {
    const { body } = await get(site, "/docs/reference/actions");
    const sections = [...body.matchAll(/<details( open)?><summary>([^<]+)<\/summary>/g)];
    expect(sections.map(([, , title]) => title)).to.deep.equal([
      "Start",
      "Guides",
      "Reference",
      "Operate",
      "Internals",
    ]);
    expect(sections.filter(([, open]) => open).map(([, , title]) => title)).to.deep.equal(["Reference"]);
  });

  it("serve no other file of the installation, in any notation of its name", async () => {
    const names = ["nothing", "nothing.md", "../package.json", "..%2fpackage.json", "%2e%2e%2fREADME.md", "a%00.md"];
    const pictures = ["pictures/", "pictures/..%2fREADME.md", "pictures/%2e%2e/%2e%2e/package.json", "constructor"];
    for (const name of [...names, ...pictures]) {
      const { statusCode } = await get(site, `/docs/${name}`);
      expect(statusCode, name).to.be.within(400, 404);
    }
  });

  it("render HTML, scripts and addresses of any page as text", async () => {
    const hostile = siteOf({
      "docs/README.md": "# Docs\n\n**All**: [one](one.md)\n",
      "docs/one.md":
        '# One <script>x</script>\n\nText <img src=x onerror=alert(1)> [a](javascript:alert(1)) [b]("onclick=x)\n\n<script>alert(1)</script>\n\n```html\n<b>kept</b>\n```\n\n## Same\n\n## Same\n\n[gone](../package.json)\n',
    });
    const { body } = await get(hostile, "/docs/one");
    const main = body.slice(body.indexOf("<main"), body.indexOf("</main>"));
    expect(main).not.to.match(/<script|<img|href="javascript:|\sonerror|\sonclick="/);
    expect(main).to.contain("&lt;b&gt;kept&lt;/b&gt;").and.contain('id="same"').and.contain('id="same-1"');
    expect(main).not.to.contain("package.json");
    await hostile.close();
  });
});
