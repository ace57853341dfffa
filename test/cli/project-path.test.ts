/** Tests the paths of a project on Windows and Linux: both systems push the same manifest, and a pull stays in the folder. */
import { mkdtempSync, readdirSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, posix, win32 } from "node:path";
import { expect } from "chai";
import { stop as stopEsbuild } from "esbuild";
import fc from "fast-check";
import { Project } from "../../src/cli/svc/project.js";
import {
  encodeFileName,
  findNamesEqualIgnoringCase,
  isInvalidOnWindows,
  isPortablePath,
  resolveInProject,
} from "../../src/cli/svc/project-path.js";
import { ProjectReader } from "../../src/engine/bundler/project/project-reader.js";
import { isValidSourcePath } from "../../src/rules/action-source.js";
import { writeProjectFile as write } from "../harness/svc-projects.js";

const DEVICES = ["con", "CON", "prn", "Aux", "nul", "COM1", "lpt9"];
const WINDOWS_ROOTS = [
  "C:\\work\\shop",
  "d:\\",
  "\\\\host\\share",
  "\\\\host\\share\\My Shop",
  "C:\\..\\shop.",
  "Z:\\Ä b",
];
const ENTRIES = ["action.ts", "action.js"];

/** Generates names as authors and attackers choose them, such as reserved words of operating systems, separators and drives. */
const names = fc
  .array(
    fc.oneof(
      fc.constantFrom(...DEVICES, ".", "..", "..\\", "../", "\\", "/", "C:", "\\\\host\\share\\", " ", ".ts", "*", "?"),
      fc.string({ unit: "grapheme", maxLength: 6 }),
    ),
    { minLength: 1, maxLength: 4 },
  )
  .map((parts) => parts.join(""))
  // Leaves out longer names, because the project shortens their file names.
  .filter((name) => name.isWellFormed() && 3 * Buffer.byteLength(name) <= 200);

const segments = fc.stringMatching(/^[a-zA-Z0-9_$@-]{1,12}(?:\.[a-z]{1,4})?$/);
const paths = fc.array(segments, { minLength: 1, maxLength: 4 }).map((parts) => parts.join("/"));

describe("paths of a project", () => {
  it("are the same in the manifest from Windows and from Linux", () => {
    fc.assert(
      fc.property(fc.constantFrom(...WINDOWS_ROOTS), paths, (root, path) => {
        expect(resolveInProject(root, win32.join(root, path), win32)).to.equal(path);
        expect(resolveInProject(root.toUpperCase(), win32.join(root.toLowerCase(), path), win32)).to.equal(path);
        expect(resolveInProject("/srv/shop", posix.join("/srv/shop", path), posix)).to.equal(path);
      }),
    );
  });

  it("outside of the folder belong to no project, on both systems", () => {
    const outside = [
      "C:\\work\\shop",
      "C:\\work",
      "C:\\work\\shopping\\a.ts",
      "D:\\work\\shop\\a.ts",
      "\\\\h\\s\\a.ts",
    ];
    for (const file of outside) expect(resolveInProject("C:\\work\\shop", file, win32), file).to.equal(null);
    for (const file of ["/srv/shop", "/srv", "/srv/shopping/a.ts", "/a.ts"])
      expect(resolveInProject("/srv/shop", file, posix), file).to.equal(null);
    expect(resolveInProject("C:\\work\\shop", "C:\\work\\shop\\..a\\b.ts", win32)).to.equal("..a/b.ts");
  });

  it("of a name are one valid file name, from which the name can be read", () => {
    fc.assert(
      fc.property(names, (name) => {
        const file = encodeFileName(name);
        expect(decodeURIComponent(file)).to.equal(name);
        expect(isInvalidOnWindows(file), file).to.equal(false);
        for (const [root, system] of [
          ["C:\\shop", win32],
          ["/shop", posix],
        ] as const)
          expect(system.dirname(system.join(root, "data", `${file}.json`))).to.equal(system.join(root, "data"));
      }),
      { numRuns: 1_000 },
    );
    expect(DEVICES.map(encodeFileName).every((file) => file.startsWith("%"))).to.equal(true);
    expect(["console", "comet", "Report 7"].map(encodeFileName)).to.deep.equal(["console", "comet", "Report%207"]);
  });

  it("of a pulled source never leave the folder, on both systems", () => {
    const accepted: string[] = [];
    fc.assert(
      fc.property(fc.oneof(names, paths), (path) => {
        if (!isValidSourcePath(path)) return;
        accepted.push(path);
        expect(resolveInProject("C:\\shop", win32.join("C:\\shop", path), win32), path).to.equal(path);
        expect(resolveInProject("/shop", posix.join("/shop", path), posix), path).to.equal(path);
      }),
      { numRuns: 1_000 },
    );
    expect(accepted.length).to.be.greaterThan(100);
    for (const path of [
      "..\\a.ts",
      "lib\\a.ts",
      "C:\\a.ts",
      "C:a.ts",
      "\\\\h\\s\\a.ts",
      "../a.ts",
      "lib/../../a.ts",
      "/a.ts",
    ])
      expect(isValidSourcePath(path), path).to.equal(false);
    for (const path of ["con.ts", "lib/AUX", "lib/a.", "lib/a /b.ts"]) expect(isInvalidOnWindows(path)).to.equal(true);
  });

  it("lead to equal manifests, also with imports that only Windows could follow", async () => {
    const files: Record<string, string> = {
      "actions/%63on/action.ts":
        'import { a } from "../../lib/a";\nimport { b } from "./..\\\\..\\\\lib\\\\b";\nimport { c } from "C:/lib/c";\nexport const execute = () => [a, b, c];\n',
      "lib/a.ts": "export const a = 1;\n",
      "lib/b.ts": "export const b = 2;\n",
      "data/%2E%2E%5Cstock.json": '{"columns": ["Name"]}',
    };
    const manifestOn = (system: typeof win32, root: string) => {
      const disk = new Map(Object.entries(files).map(([path, text]) => [system.join(root, path), text]));
      const read = (path: string) => (isPortablePath(path) ? (disk.get(system.join(root, path)) ?? null) : null);
      const list = (folder: string) => {
        const below = [...disk.keys()].map((file) => resolveInProject(system.join(root, folder), file, system));
        return [...new Set(below.flatMap((path) => (path === null ? [] : [path.split("/")[0]!])))];
      };
      return new ProjectReader({ read, list }, ENTRIES).readManifest();
    };
    const onLinux = await manifestOn(posix, "/shop");
    expect(await manifestOn(win32, "C:\\Shop")).to.deep.equal(onLinux);
    expect(onLinux.dataSources).to.deep.equal([{ name: "..\\stock", columns: ["Name"] }]);
    const [action] = onLinux.actions!;
    expect(action!["name"]).to.equal("con");
    expect(Object.keys((action!["source"] as { files: object }).files).sort()).to.deep.equal(["action.ts", "lib/a.ts"]);
  });

  describe("on this disk", () => {
    const TEXT = "async function execute() {}\n";
    let folder: string;
    beforeEach(() => {
      folder = mkdtempSync(join(tmpdir(), "svc-project-"));
    });
    // Stops esbuild, with which the project evaluates the configs.
    after(() => stopEsbuild());
    afterEach(() => rmSync(folder, { recursive: true, force: true }));
    const list = () => ["actions", "data"].flatMap((part) => readdirSync(join(folder, part)).sort());

    it("stay the same when an item is pulled, whatever the files of the item are called, and go with it", async () => {
      const config = (fields: string) =>
        `import { defineAction } from "svc";\n\nexport const config = defineAction({ ${fields}description: "Old" });\n\n`;
      write(folder, "actions/aux/action.js", config("") + TEXT);
      write(folder, "actions/other/action.js", config('name: "renamed", ') + TEXT);
      write(folder, "data/con.json", '{"columns": []}');
      write(folder, "data/My Stock.json", '{"columns": []}');
      write(folder, "data/short.json", '{"name": "A name", "columns": []}');
      const project = new Project(folder);
      const before = list();
      const { actions = [], dataSources = [] } = await project.readManifest();
      await project.writeManifest({
        version: 1,
        actions: actions.map((action) => ({ ...action, description: "New" })),
        dataSources: dataSources.map((source) => ({ ...source, columns: ["Name"] })),
      });
      expect(list()).to.deep.equal(before);
      const pulled = await project.readManifest();
      expect(pulled.actions!.map(({ name, description }) => [name, description])).to.deep.equal([
        ["aux", "New"],
        ["renamed", "New"],
      ]);
      expect(pulled.dataSources!.map(({ name, columns }) => [name, columns])).to.deep.equal([
        ["My Stock", ["Name"]],
        ["con", ["Name"]],
        ["A name", ["Name"]],
      ]);
      // Adds a second file of the same action under another name, as an earlier pull may have written.
      write(folder, "actions/%61ux/action.js", TEXT);
      for (const name of ["aux", "renamed"]) await project.removeItem("action", name);
      for (const name of ["con", "My Stock", "A name"]) await project.removeItem("data source", name);
      expect(list()).to.deep.equal([]);
    });

    // Windows cannot create the files of this test.
    const itExceptOnWindows = process.platform === "win32" ? () => undefined : it;
    itExceptOnWindows("are refused if Windows cannot store them, and the error names the new one", async () => {
      write(folder, "data/notes: x.txt", "no item");
      const project = new Project(folder);
      expect(project.readDefinitions().dataSources).to.deep.equal([]);
      write(folder, "data/Sales: 2024.json", '{"columns": ["Name"]}');
      expect(() => project.readDefinitions()).to.throw("rename it to Sales%3A%202024.json");
      write(folder, "actions/a\\b/action.js", TEXT);
      const refused = await project.readManifest().catch((error: Error) => error.message);
      expect(refused).to.include("the name actions/a\\b;").and.include("rename it to a%5Cb");
    });

    // Windows and macOS would store these two names, which differ only in case, as one file.
    const itOnLinux = process.platform === "linux" ? it : () => undefined;
    itOnLinux("may be links to a name in another case", async () => {
      write(folder, "lib/Dates.ts", "export const day = 1;\n");
      symlinkSync("Dates.ts", join(folder, "lib/dates.ts"));
      write(
        folder,
        "actions/a/action.ts",
        'import { day } from "../../lib/dates";\nexport const execute = () => day;\n',
      );
      const { source } = await new Project(folder).readAction("a");
      expect(Object.keys((source as { files: object }).files)).to.have.members(["action.ts", "lib/dates.ts"]);
    });

    it("are short enough for every name", async () => {
      const names = ["\u{65e5}".repeat(27), `${"\u{65e5}".repeat(27)}!`, "\u{1f600}".repeat(255), ".".repeat(255)];
      const project = new Project(folder);
      const sources = names.map((name) => ({ name, columns: ["Name"] }));
      await project.writeManifest({
        version: 1,
        actions: [{ name: "a".repeat(250), code: TEXT }],
        dataSources: sources,
      });
      const { actions, dataSources } = await project.readManifest();
      expect(actions!.map(({ name }) => name)).to.deep.equal(["a".repeat(250)]);
      expect(dataSources).to.have.deep.members(sources);
    });
  });

  it("of two items that differ only in case are one file on Windows and macOS", () => {
    expect(findNamesEqualIgnoringCase(["Report", "other", "report"])).to.deep.equal(["Report", "report"]);
    expect(findNamesEqualIgnoringCase(["Report", "Reports"])).to.equal(null);
    expect(["CONIN$", "lib/conout$.ts"].map(isInvalidOnWindows)).to.deep.equal([true, true]);
  });
});
