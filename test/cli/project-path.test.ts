/** Tests the paths of a project on Windows and Linux: both systems push the same manifest, and a pull stays in the folder. */
import { posix, win32 } from "node:path";
import { expect } from "chai";
import fc from "fast-check";
import { fileNameOf, isInvalidOnWindows, isSystemNeutral, projectPathOf } from "../../src/cli/svc/project-path.js";
import { ProjectReader } from "../../src/engine/bundler/project/project-reader.js";
import { isSourcePath } from "../../src/rules/action-source.js";

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

/** A name as authors and attackers choose it: words of the systems, separators, drives, trailing dots, and any other text. */
const names = fc
  .array(
    fc.oneof(
      fc.constantFrom(...DEVICES, ".", "..", "..\\", "../", "\\", "/", "C:", "\\\\host\\share\\", " ", ".ts", "*", "?"),
      fc.string({ unit: "grapheme", maxLength: 6 }),
    ),
    { minLength: 1, maxLength: 4 },
  )
  .map((parts) => parts.join(""))
  .filter((name) => name.isWellFormed());

const segments = fc.stringMatching(/^[a-zA-Z0-9_$@-]{1,12}(?:\.[a-z]{1,4})?$/);
const paths = fc.array(segments, { minLength: 1, maxLength: 4 }).map((parts) => parts.join("/"));

describe("paths of a project", () => {
  it("are the same in the manifest from Windows and from Linux", () => {
    fc.assert(
      fc.property(fc.constantFrom(...WINDOWS_ROOTS), paths, (root, path) => {
        expect(projectPathOf(root, win32.join(root, path), win32)).to.equal(path);
        expect(projectPathOf(root.toUpperCase(), win32.join(root.toLowerCase(), path), win32)).to.equal(path);
        expect(projectPathOf("/work/shop", posix.join("/work/shop", path), posix)).to.equal(path);
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
    for (const file of outside) expect(projectPathOf("C:\\work\\shop", file, win32), file).to.equal(null);
    for (const file of ["/work/shop", "/work", "/work/shopping/a.ts", "/a.ts"])
      expect(projectPathOf("/work/shop", file, posix), file).to.equal(null);
    expect(projectPathOf("C:\\work\\shop", "C:\\work\\shop\\..a\\b.ts", win32)).to.equal("..a/b.ts");
  });

  it("of a name are one valid file name, from which the name can be read", () => {
    fc.assert(
      fc.property(names, (name) => {
        const file = fileNameOf(name);
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
    expect(DEVICES.map(fileNameOf).every((file) => file.startsWith("%"))).to.equal(true);
    expect(["console", "comet", "Report 7"].map(fileNameOf)).to.deep.equal(["console", "comet", "Report%207"]);
  });

  it("of a pulled source never leave the folder, on both systems", () => {
    const accepted: string[] = [];
    fc.assert(
      fc.property(fc.oneof(names, paths), (path) => {
        if (!isSourcePath(path)) return;
        accepted.push(path);
        expect(projectPathOf("C:\\shop", win32.join("C:\\shop", path), win32), path).to.equal(path);
        expect(projectPathOf("/shop", posix.join("/shop", path), posix), path).to.equal(path);
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
      expect(isSourcePath(path), path).to.equal(false);
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
      const read = (path: string) => (isSystemNeutral(path) ? (disk.get(system.join(root, path)) ?? null) : null);
      const list = (folder: string) => {
        const below = [...disk.keys()].map((file) => projectPathOf(system.join(root, folder), file, system));
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
});
