/** Tests how dependencies resolve to packages, and an operator's additions to the catalogue. */
import { readFile } from "node:fs/promises";
import { expect } from "chai";
import { NETWORK_ISOLATE_GLOBALS } from "../../src/engine/browser/globals.js";
import { isDocumentGlobal } from "../../src/engine/browser/mode.js";
import { findUsedGlobalNames, parsePackageScript } from "../../src/engine/bundler/used-names.js";
import {
  addAssetUrls,
  BUILT_IN_PACKAGES,
  createPackageCatalogue,
  findModeForClientLibraryCode,
  findPackageRequirement,
  getStoredScriptPath,
  needsClientLibrary,
  parseDependency,
} from "../../src/rules/packages.js";
import { longTest } from "../harness/samples.js";
import { refusal } from "./refusal.js";

const BASE = "https://actions.example.com";
const catalogue = createPackageCatalogue();

describe("dependencies", () => {
  it("resolve a package to the file that the service serves", () => {
    const stored = [{ name: "svc-session", path: "/client/packages/svc-session.js" }];
    expect(parseDependency("svc-session", catalogue)).to.deep.equal({ kind: "served", asset: stored[0] });
    expect(addAssetUrls(stored, catalogue, BASE)).to.deep.equal([
      { name: "svc-session", url: `${BASE}/client/packages/svc-session.js`, path: "/client/packages/svc-session.js" },
    ]);
  });

  it("with an address of the service get its current address, all others keep theirs", () => {
    const path = "/client/packages/svc-csv.js";
    const stored = [
      { name: "svc-csv", url: `https://before.example.com${path}`, path },
      { name: "https://cdn.example.com/a.js", url: "https://cdn.example.com/a.js", path: "/a.js" },
      { name: "left-the-catalogue", url: "https://cdn.example.com/b.js", path: "/b.js" },
    ];
    expect(addAssetUrls(stored, catalogue, BASE)).to.deep.equal([
      { name: "svc-csv", url: BASE + path, path },
      ...stored.slice(1),
    ]);
  });

  it("that the service stores are served by it, with their description", () => {
    const sha256 = "0".repeat(64);
    const kept = { version: "4.1.0", licence: "MIT", global: "dateFns", integrity: "sha256-x", bytes: 7 };
    const stored = [{ name: "date-fns@4", path: getStoredScriptPath(sha256), sha256, ...kept }];
    expect(addAssetUrls(stored, catalogue, BASE)).to.deep.equal([
      { name: "date-fns@4", url: BASE + getStoredScriptPath(sha256), path: getStoredScriptPath(sha256), ...kept },
    ]);
  });

  it("name an external https URL by itself", () => {
    const url = "https://cdn.example.com/lib/day.js?v=1";
    expect(parseDependency(url, catalogue)).to.deep.equal({ kind: "address", url });
  });

  it("name packages from npm with or without a scope, a version, a range or a tag", () => {
    const NAMED: [string, string, string, string?][] = [
      ["lodash", "lodash", ""],
      ["lodash@*", "lodash", "*"],
      ["date-fns@4", "date-fns", "4"],
      ["@scope/name@^2", "@scope/name", "^2"],
      ["zod@next", "zod", "next"],
      ["JSONStream@1.3.5", "JSONStream", "1.3.5"],
      ["lodash/get", "lodash", "", "/get"],
      ["@noble/hashes@1/sha256.js", "@noble/hashes", "1", "/sha256.js"],
    ];
    for (const [dependency, name, range, subpath = ""] of NAMED) {
      expect(parseDependency(dependency, catalogue), dependency).to.deep.equal({ kind: "npm", name, range, subpath });
    }
  });

  const REFUSED: [string, RegExp][] = [
    ["svc-unknown", /"svc-unknown" is not a package of this service/],
    ["SVC-session", /not a package of this service/],
    ["__proto__", /not a package of this service/],
    ["//cdn.example.com/x.js", /not a package of this service/],
    ["./local.js", /not a package of this service/],
    ["http://cdn.example.com/x.js", /must be an https URL/],
    ["ftp://cdn.example.com/x.js", /must be an https URL/],
    ["file:///etc/passwd", /must be an https URL/],
    ["data:text/javascript,alert(1)", /must be an https URL/],
    ["javascript:alert(1)", /must be an https URL/],
    ["https://user:secret@cdn.example.com/x.js", /user name or password/],
    ["https://user@cdn.example.com/x.js", /user name or password/],
    ["https://", /not a valid URL/],
    ["https://cdn.example.com/a b.js", /not a valid URL/],
    ["https:\\\\cdn.example.com\\x.js", /not a valid URL/],
    ["ht\ntps://cdn.example.com/x.js", /not a package of this service/],
    ["lodash@npm:other", /not a package of this service/],
    ["lodash@file:../x", /not a package of this service/],
    ["lodash@https://cdn.example.com/x.tgz", /not a package of this service/],
    ["lodash/../other", /not a package of this service/],
    ["lodash/./get", /not a package of this service/],
    ["lodash//get", /not a package of this service/],
    ["lodash/get/", /not a package of this service/],
    ["git@github.com:owner/repository", /not a package of this service|https URL/],
    ["../../etc/passwd", /not a package of this service/],
    ["@scope/../../name", /not a package of this service/],
    ["a%2fb", /not a package of this service/],
    ["a\\b", /not a package of this service/],
    [" lodash", /not a package of this service/],
    ["lodash@1 || 2", /not a package of this service/],
    [`https://cdn.example.com/${"x".repeat(2048)}`, /longer than 2048/],
  ];
  for (const [dependency, expected] of REFUSED) {
    it(`are rejected and named: ${JSON.stringify(dependency.slice(0, 60))}`, () => {
      const message = refusal("DEPENDENCY_UNRESOLVED", () => parseDependency(dependency, catalogue));
      expect(message).to.match(expected).and.have.length.below(260);
    });
  }
});

describe("the catalogue", () => {
  it("accepts an operator's packages, served here or elsewhere, and lets them replace a built-in one", () => {
    const extended = createPackageCatalogue([
      { name: "acme-tools", path: "/client/packages/acme-tools.js" },
      { name: "dayjs", namespace: null, url: "https://cdn.example.com/dayjs.min.js" },
      { name: "svc-csv", namespace: "CSV", path: "/client/packages/csv-2.js" },
    ]);
    expect(parseDependency("acme-tools", extended)).to.deep.nested.include({
      kind: "served",
      "asset.path": "/client/packages/acme-tools.js",
    });
    expect(parseDependency("dayjs", extended)).to.deep.equal({
      kind: "address",
      url: "https://cdn.example.com/dayjs.min.js",
    });
    expect(parseDependency("svc-csv", extended)).to.deep.nested.include({
      kind: "served",
      "asset.path": "/client/packages/csv-2.js",
    });
    expect(extended.size).to.equal(12);
  });

  it("names the invalid entry and field", () => {
    const good = { name: "a", path: "/a.js" };
    const faulty: [unknown, RegExp][] = [
      [{}, /the content must be an array/],
      [[good, 1], /packages\[1\] must be an object/],
      [[{ ...good, mode: "page" }], /mode must be one of isolate, network-isolate, document \(got "page"\)/],
      [[{ ...good, standalone: 1 }], /standalone must be true, false or an array of function names \(got 1\)/],
      [[{ ...good, standalone: ["a", "(b"] }], /packages\[0\]\.standalone/],
      [[{ ...good, inDocument: "a" }], /inDocument must be an array of function names \(got "a"\)/],
      [[{ ...good, withoutDocument: "a" }], /withoutDocument must be an array of function names \(got "a"\)/],
      [[{ ...good, network: 1 }], /network must be true or false \(got 1\)/],
      [[{ ...good, name: "A b" }], /packages\[0\]\.name/],
      [[{ ...good, namespace: "a.b" }], /packages\[0\]\.namespace/],
      [[{ ...good, path: "a.js" }], /packages\[0\]\.path/],
      [[{ ...good, url: "https://x.example/a.js" }], /packages\[0\]\.path/],
      [[{ name: "a" }], /packages\[0\]\.path/],
      [[{ name: "a", url: "http://x.example/a.js" }], /packages\[0\]\.url/],
    ];
    for (const [entries, expected] of faulty) expect(() => createPackageCatalogue(entries)).to.throw(expected);
  });

  it("omits the client library if the code and all packages can do without it", () => {
    const catalogue = createPackageCatalogue([
      { name: "acme-tools", namespace: "Acme", path: "/client/packages/acme-tools.js" },
    ]);
    const needs = (code: string, ...dependencies: string[]) => needsClientLibrary(code, dependencies, catalogue);
    expect(needs("return 1")).to.equal(false);
    expect(needs("return Svc.CSV.parse(Svc.Encryption.hash(''))", "svc-csv", "svc-encryption")).to.equal(false);
    expect(needs("return Svc.Session.get()", "svc-session")).to.equal(false);
    expect(needs("return Svc.Session.set({ locale: 'de' })", "svc-session")).to.equal(true);
    expect(needs("const session = Svc.Session; return session.get()", "svc-session")).to.equal(true);
    expect(needs("return Svc.DataSources.get()", "svc-datasources")).to.equal(true);
    expect(needs("return Svc.CSV.parse('')")).to.equal(true);
    expect(needs("return Svc.CSV.parse(await Svc.App.V3.Actions.run('a'))", "svc-csv")).to.equal(true);
    expect(needs("return Svc.CSVs.parse('')", "svc-csv")).to.equal(true);
    expect(needs("const { CSV } = Svc; return CSV.parse('')", "svc-csv")).to.equal(true);
    expect(needs("return Svc.CSV.parse('')", "svc-csv", "acme-tools")).to.equal(true);
    expect(needs("return Svc.CSV.parse('')", "svc-csv", "https://cdn.example.com/a.js")).to.equal(true);
  });

  it("needs a document on the server by default, and for code that subscribes", () => {
    const catalogue = createPackageCatalogue([{ name: "acme", namespace: "Acme", path: "/client/packages/acme.js" }]);
    const mode = (name: string, code: string) => findPackageRequirement(catalogue.get(name)!, code).mode;
    expect(mode("acme", "return Acme()")).to.equal("document");
    expect(mode("svc-csv", "return Svc.CSV.parse('')")).to.equal("network-isolate");
    expect(mode("svc-datasources", "return source.find({})")).to.equal("network-isolate");
    expect(mode("svc-datasources", "return source.subscribe({}, next)")).to.equal("document");
    expect(mode("svc-datasources", "return source['subscribe']({}, next)")).to.equal("document");
    expect(mode("svc-datasources", "return subscribers")).to.equal("network-isolate");
  });

  it("needs a document for functions that need one, and an isolate if the code names only others", () => {
    const entry = createPackageCatalogue().get("svc-barcode")!;
    for (const code of [
      "return Svc.Barcode.qr('1')",
      "return Svc.CSV.parse(Svc.Barcode.svg({ png: 1 })) // png",
      "return 1",
    ])
      expect(findPackageRequirement(entry, code), code).to.deep.include({ mode: "network-isolate", canBeTried: true });
    for (const code of [
      "return Svc.Barcode.png({})",
      "return Svc.Barcode[payload.kind]({})",
      "return Svc['Barcode'].svg({})",
      "const { Barcode } = Svc; return Barcode[kind]()",
      "const { svg } = Svc.Barcode; return svg({})",
      "return Svc.Barcode.svgs()",
    ])
      expect(findPackageRequirement(entry, code), code).to.deep.equal({
        mode: "document",
        network: false,
        canBeTried: false,
      });
    expect(findPackageRequirement(entry, "return draw()", true).mode).to.equal("document");
  });

  it("run in a document if the code names a function that needs one", () => {
    const catalogue = createPackageCatalogue([
      { name: "acme", namespace: "Acme", path: "/acme.js", mode: "network-isolate", inDocument: ["show"] },
    ]);
    const mode = (name: string, code: string) => findPackageRequirement(catalogue.get(name)!, code).mode;
    expect(mode("acme", "return Acme.read()")).to.equal("network-isolate");
    expect(mode("acme", "return Acme.show(Acme.send())")).to.equal("document");
    expect(mode("svc-media", "return Svc.Media.Files.getAll()")).to.equal("network-isolate");
    expect(mode("svc-media", "return Svc.Media.Files.getContents(1)")).to.equal("document");
    expect(mode("svc-media", "const { upload } = Svc.Media.Files; return upload({ file })")).to.equal("document");
  });

  it("run the client library in a document if the code may use more of it than its packages", () => {
    const catalogue = createPackageCatalogue();
    const mode = (code: string, ...dependencies: string[]) =>
      findModeForClientLibraryCode(code, dependencies, catalogue);
    expect(mode("return Svc.App.V3.Actions.run('a')")).to.equal("document");
    expect(mode("return Svc.DataSources.get(await Svc.App.V3.Actions.run('a'))", "svc-datasources")).to.equal(
      "document",
    );
    expect(mode("return Svc.DataSources.get()")).to.equal("document");
    expect(mode("return Svc.DataSources.get()", "svc-datasources")).to.equal("network-isolate");
    expect(mode("return Svc.CSV.parse(await Svc.DataSources.get())", "svc-datasources", "svc-csv")).to.equal(
      "network-isolate",
    );
    expect(mode("Svc.App.Analytics.event('a')")).to.equal("document");
    expect(mode("Svc.App.Triggers.start()")).to.equal("document");
    expect(mode("const { App } = Svc; return App")).to.equal("document");
    expect(mode("return Svc.App.V3.ActionsOfMine")).to.equal("document");
  });

  longTest(
    "that run in a network isolate name no global beyond it, but in functions that need a document",
    async () => {
      const beyond = new Map<string, string[]>();
      for (const { name, path, mode } of BUILT_IN_PACKAGES) {
        if (mode !== "network-isolate") continue;
        const names = findUsedGlobalNames(
          parsePackageScript(await readFile(new URL(`../../web${path}`, import.meta.url), "utf8")),
        );
        beyond.set(
          name,
          names.filter((used) => isDocumentGlobal(used) && !NETWORK_ISOLATE_GLOBALS.includes(used)),
        );
      }
      expect(Object.fromEntries(beyond)).to.deep.equal({
        "svc-datasources": [],
        "svc-session": [],
        "svc-communicate": [
          "document",
          "isSecureContext",
          "location",
          "navigator",
          "navigator.clipboard",
          "navigator.share",
          "window",
        ],
        "svc-media": [],
        "svc-barcode": ["document"],
        "svc-csv": ["FileReader", "XMLHttpRequest", "self", "window"],
        "svc-encryption": [],
        "svc-ai": [],
        "svc-notifications": ["Notification", "location", "navigator", "navigator.serviceWorker"],
      });
    },
  );
});
