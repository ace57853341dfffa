/**
 * Runs code that uses popular packages from npm's registry, in a server action and in a browser's page, and checks its result. Also checks
 * the errors of packages that cannot run there. Fails without a registry.
 */
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { expect } from "chai";
import type { Browser, Page } from "puppeteer";
import { startTestService, type TestService } from "../harness/service.js";
import { launchChromium } from "../web/chromium.js";

/**
 * A dependency, a body of `execute` that uses the dependency, and the expected result. In the body, `url` is the URL of {@link startHost}.
 */
type PackageSample = readonly [dependency: string, body: string, expected: unknown];

/** Workbook of Excel in base64. Its sheet "Stock" has one row, with a text and a number. */
const WORKBOOK =
  "UEsDBBQAAAAIANo9e132E+lujwAAAOAAAAAPAAAAeGwvd29ya2Jvb2sueG1sjY8xDsIwDEWvEvkAGBgYqrYTCzMnCKlLotZxFBvB8alaujPZ/3/5fbl9S50eIpP78Jy1g2hWGkQNkdjrQQrlJRmlsrdF1idqqeQHjUTGM56PxwuyTxk2QlP/Ycg4pkBXCS+mbBuk0uwtSdaYikLfrg36my57pg7uJmECt1q3oYMTuNqkZfGAfYv7Ce5f9V9QSwMEFAAAAAgA2j17XeJl346HAAAA6QAAABoAAAB4bC9fcmVscy93b3JrYm9vay54bWwucmVsc43PTQrCMBAF4KuEOUCnuHAhSVdu3IoXGOK0KW1+yExRb29WUsGFy/cefPDslVfSOScJcxHzjGsSB0G1nBDFB44kXS6c2jLmGklbrBMW8gtNjIe+P2LdGzDYvWkudwcE5vYq/A+cx3H2fM5+i5z0h4+PXBcJzNpQqhOrg08lSF0DAQeLX8+GN1BLAwQUAAAACADaPXtdp5uoR5EAAADIAAAAEwAAAHhsL3dvcmtzaGVldHMvYS54bWxNjksOwjAMRK9S5QC47YIFci2BWLLjBFYINKL5yLFajk9aEGJjeZ49Y+OS5FlG57R5hSmWwYyq+QBQ7OgCl13KLtbJPUlgrVIeULI4vm2mMEHftnsI7KMh3NiZlQklLY0MpqvUrs2xM40OxsfJR3dVqdwXQqULh4yghLBqsN/90+qcqW8R5g+GGlnr3w34PU9vUEsBAhQDFAAAAAgA2j17XfYT6W6PAAAA4AAAAA8AAAAAAAAAAAAAAIABAAAAAHhsL3dvcmtib29rLnhtbFBLAQIUAxQAAAAIANo9e13iZd+OhwAAAOkAAAAaAAAAAAAAAAAAAACAAbwAAAB4bC9fcmVscy93b3JrYm9vay54bWwucmVsc1BLAQIUAxQAAAAIANo9e12nm6hHkQAAAMgAAAATAAAAAAAAAAAAAACAAXsBAAB4bC93b3Jrc2hlZXRzL2EueG1sUEsFBgAAAAADAAMAxgAAAD0CAAAAAA==";

const PACKAGE_SAMPLES: readonly PackageSample[] = [
  // Dates
  ["dayjs", "return dayjs('2026-02-28').add(1, 'day').format('YYYY-MM-DD')", "2026-03-01"],
  ["date-fns@4", "return dateFns.format(dateFns.addMonths(new Date(2026, 0, 31), 1), 'yyyy-MM-dd')", "2026-02-28"],
  ["luxon", "return luxon.DateTime.fromISO('2026-03-29T01:30', { zone: 'Europe/Berlin' }).plus({ hours: 1 }).hour", 3],
  ["moment", "return moment.utc(0).format('YYYY')", "1970"],
  // Validation
  ["zod", "return z.object({ a: z.number() }).safeParse({ a: 'x' }).success", false],
  ["yup", "return yup.object({ a: yup.number().required() }).isValid({ a: 1 })", true],
  ["joi", "return joi.number().max(3).validate(4).error.message", '"value" must be less than or equal to 3'],
  ["validator", "return [validator.isEmail('a@b.co'), validator.isEmail('a@')]", [true, false]],
  ["superstruct", "return superstruct.is(1, superstruct.string())", false],
  // Parsing
  ["papaparse", "return Papa.parse('a,b\\n1,2', { header: true }).data", [{ a: "1", b: "2" }]],
  ["acorn", "return acorn.parse('1 + 2', { ecmaVersion: 2022 }).body[0].expression.operator", "+"],
  ["ini", "return ini.parse('[a]\\nb=1')", { a: { b: "1" } }],
  ["qs", "return qs.parse('a[b]=1')", { a: { b: "1" } }],
  // YAML and XML
  ["yaml", "return YAML.parse('a: [1, 2]')", { a: [1, 2] }],
  ["js-yaml", "return jsYaml.load('a: {b: 1}')", { a: { b: 1 } }],
  ["fast-xml-parser", "return new fastXmlParser.XMLParser().parse('<a><b>1</b></a>')", { a: { b: 1 } }],
  ["xml-js", "return JSON.parse(convert.xml2json('<a>1</a>', { compact: true }))", { a: { _text: "1" } }],
  // Maths
  ["mathjs", "return math.evaluate('det([1, 2; 3, 4])')", -2],
  ["decimal.js", "return new Decimal('0.1').plus('0.2').toString()", "0.3"],
  ["bignumber.js", "return new BigNumber('2').pow(100).toFixed()", "1267650600228229401496703205376"],
  ["big.js", "return Big('1').div('3').toFixed(5)", "0.33333"],
  ["simple-statistics", "return ss.median([1, 9, 3])", 3],
  // Templates
  ["handlebars", "return Handlebars.parse('{{a}} {{b}}').body.length", 3],
  ["mustache", "return Mustache.render('{{a}}', { a: '<' })", "&lt;"],
  ["liquidjs", "return new liquidjs.Liquid().parseAndRender('{{ a | upcase }}', { a: 'x' })", "X"],
  // Text
  ["lodash", "return _.chunk([1, 2, 3], 2)", [[1, 2], [3]]],
  ["marked", "return marked.parse('# a').trim()", "<h1>a</h1>"],
  ["markdown-it", "return MarkdownIt().render('*a*').trim()", "<p><em>a</em></p>"],
  ["diff", "return Diff.diffChars('ab', 'ac').length", 3],
  ["slugify", "return slugify('Déjà vu')", "Deja-vu"],
  ["fuse.js", "return new Fuse(['apple', 'pear'], {}).search('aple')[0].item", "apple"],
  ["pluralize", "return pluralize('goose', 2)", "geese"],
  // Crypto and ids
  ["crypto-js", "return CryptoJS.SHA256('a').toString().slice(0, 8)", "ca978112"],
  ["tweetnacl", "return tweetnacl.hash(new Uint8Array(0)).length", 64],
  ["bcryptjs", "return bcrypt.compareSync('a', bcrypt.hashSync('a', 4))", true],
  [
    "jose",
    "return (await new jose.SignJWT({}).setProtectedHeader({ alg: 'HS256' }).sign(new Uint8Array(32))).split('.').length",
    3,
  ],
  ["@noble/hashes/sha2.js", "return Array.from(sha2.sha256(new Uint8Array(0)).slice(0, 2))", [227, 176]],
  ["uuid", "return uuid.validate(uuid.v7())", true],
  ["@noble/hashes@1/sha256", "return Array.from(sha256.sha256(new Uint8Array(0)).slice(0, 2))", [227, 176]],
  // HTTP clients
  [
    "axios",
    "return (await axios.post(url, { a: 1 }, { params: { b: 2 } })).data",
    { method: "POST", url: "/?b=2", body: '{"a":1}' },
  ],
  [
    "ky",
    "return ky.put(url, { json: [1], searchParams: { b: 2 } }).json()",
    { method: "PUT", url: "/?b=2", body: "[1]" },
  ],
  // PDF and spreadsheets
  ["pdf-lib", "return PDFLib.PDFDocument.create().then((pdf) => { pdf.addPage(); return pdf.getPageCount() })", 1],
  ["jspdf", "return String(new jspdf.jsPDF().output()).slice(0, 5)", "%PDF-"],
  [
    "read-excel-file@9/universal",
    `return universal(new Blob([Uint8Array.fromBase64('${WORKBOOK}')]))`,
    [{ sheet: "Stock", data: [["Lamp", 20]] }],
  ],
  ["xlsx", "return XLSX.utils.sheet_to_csv(XLSX.utils.aoa_to_sheet([[1, 'a']])).trim()", "1,a"],
  [
    "exceljs",
    "const book = new ExcelJS.Workbook(); book.addWorksheet('a').addRow([1, 2]); return (await book.xlsx.writeBuffer()).byteLength > 1000",
    true,
  ],
];

/** Dependencies that cannot run. The error of each must name the reason. */
const UNSUPPORTED: readonly (readonly [dependency: string, reason: RegExp])[] = [
  ["express", /needs the Node modules .*\bstring_decoder\b/],
  ["pg", /needs the Node modules .*\bdns\b/],
  ["sharp", /needs the Node modules .*\bchild_process\b/],
  ["puppeteer", /needs the Node modules .*\bnode:https\b/],
  ["fs-extra", /needs the Node modules .*\bfs\b/],
  ["nodemailer", /needs the Node modules .*\bnode:net\b/],
  ["better-sqlite3", /needs the Node modules .*\bfs\b/],
  ["chokidar", /needs the Node modules .*\bnode:fs\/promises\b/],
  ["typescript@5", /the bundler exceeded its limit of 512 MB$/],
  // The archives of version 7 have paths with a `.` segment, such as `package/./dist`.
  ["https-proxy-agent@7", /needs the Node modules .*\bnet, tls\b/],
  ["https-proxy-agent", /needs the Node modules .*\bnet, tls\b/],
  ["xml2js", /cannot be loaded: .*"events".*; use fast-xml-parser instead$/],
  ["pdfkit", /cannot be loaded: .*; use pdf-lib or jspdf instead$/],
  ["mjml-browser", /cannot be loaded: .*"cheerio".*; use svc-communicate with html instead$/],
  // The entry file of this package throws an error that names its subpaths.
  ["@noble/hashes", /cannot be loaded: .*import submodules instead/],
  ["@noble/hashes@2/sha256", /has no file or export "sha256"$/],
  ["jsonwebtoken", /needs the Node modules .*\bcrypto\b.*; use jose instead$/],
  ["csv-parse", /needs the Node modules stream\b.*; use svc-csv or papaparse instead$/],
  ["csv-parse/sync", /cannot be loaded: Buffer is not defined; use svc-csv or papaparse instead$/],
  ["mongodb", /needs the Node modules .*\bhttp\b/],
];

/** Starts a local host that returns the request that it received, and allows every origin. */
async function startHost(): Promise<Server> {
  const host = createServer(async (request, response) => {
    const allowed = {
      "Access-Control-Allow-Origin": "*",
      "Access-Control-Allow-Headers": "*",
      "Access-Control-Allow-Methods": "*",
    };
    const { method, url } = request;
    const body = await text(request);
    response
      .writeHead(200, { "Content-Type": "application/json", ...allowed })
      .end(JSON.stringify({ method, url, body }));
  }).listen(0, "127.0.0.1");
  await once(host, "listening");
  return host;
}

describe("popular packages", () => {
  let service: TestService;
  let browser: Browser;
  let page: Page;
  let host: Server;
  let payload: { url: string };

  before(async () => {
    const environment = {
      NPM_PACKAGES: "on",
      ...(process.env["NPM_REGISTRY"] && { NPM_REGISTRY: process.env["NPM_REGISTRY"] }),
    };
    const settings = { ...environment, INTAKE_QUOTA_MB: "0", ALLOW_PRIVATE_NETWORK: "1" };
    [service, browser, host] = await Promise.all([startTestService(settings), launchChromium(), startHost()]);
    payload = { url: `http://127.0.0.1:${(host.address() as AddressInfo).port}/` };
    const context = await browser.createBrowserContext();
    await context.setCookie({ name: "auth_token", value: service.tokens.editor, domain: "127.0.0.1", httpOnly: true });
    page = await context.newPage();
  });
  after(async () => {
    host?.close();
    await browser?.close();
    await service?.stop();
  });

  const nameOf = (dependency: string) => dependency.replaceAll(/\W/g, "-");

  for (const [dependency, body, expected] of PACKAGE_SAMPLES) {
    it(`${dependency} works in a server action and in a page`, async () => {
      const actions = `/v3/apps/${service.appId}/actions`;
      const code = `async function execute({ payload: { url } }) { ${body} }`;
      const data = {
        name: nameOf(dependency),
        code,
        active: true,
        environment: "any",
        triggers: [{ trigger: "manual" }],
        dependencies: [dependency],
      };
      const { http, body: answer } = await service.rest("POST", actions, { body: data });
      expect(http, answer.error).to.equal(201);
      const { id, name, assets } = answer.action;
      console.log(
        `      ${dependency}: ${assets[0].version}, ${assets[0].licence}, ${assets[0].global}, ${assets[0].bytes} bytes`,
      );
      const run = await service.rest("POST", `${actions}/${id}/runWithResult`, { body: payload });
      expect(run.body.result, run.body.error).to.deep.equal(expected);
      await page.goto(`${service.url}${actions}/${id}/compile?html`);
      const inPage = await page.evaluate(
        `Svc.App.V3.Actions.runWithResult(${JSON.stringify(name)}, ${JSON.stringify(payload)})`,
      );
      expect(inPage).to.deep.equal(expected);
    });
  }

  for (const [dependency, reason] of UNSUPPORTED) {
    it(`${dependency} is rejected with an explanation`, async () => {
      const data = { name: nameOf(dependency), code: "async function execute() {}", dependencies: [dependency] };
      const { http, body } = await service.rest("POST", `/v3/apps/${service.appId}/actions`, { body: data });
      console.log(`      ${body.error}`);
      expect({ http, status: body.status }).to.deep.equal({ http: 400, status: "DEPENDENCY_UNRESOLVED" });
      expect(body.error).to.include(`"${dependency}" cannot be used: `).and.match(reason);
    });
  }
});
