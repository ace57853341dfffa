/** Tests the notes of a release, which .github/workflows/release.yml creates for a pushed tag. */
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect } from "chai";

const ROOT = fileURLToPath(new URL("../../../", import.meta.url));

function printNotes(tag: string): { status: number | null; stdout: string; stderr: string } {
  const options = { cwd: ROOT, encoding: "utf8" } as const;
  return spawnSync(process.execPath, ["scripts/release-notes.mjs", tag], options);
}

describe("the notes of a release", () => {
  const changelog = readFileSync(`${ROOT}CHANGELOG.md`, "utf8");
  const versions = [...changelog.matchAll(/^## (.*)$/gm)].map(([, version]) => version!);

  it("have all entries of the version in the changelog, each in one line, and no others", () => {
    expect(versions).to.include(JSON.parse(readFileSync(`${ROOT}package.json`, "utf8")).version);
    for (const [index, version] of versions.entries()) {
      const { status, stdout } = printNotes(`v${version}`);
      const start = changelog.indexOf(`## ${version}\n`) + `## ${version}\n`.length;
      const end = index === versions.length - 1 ? changelog.length : changelog.indexOf(`## ${versions[index + 1]}\n`);
      const section = changelog.slice(start, end);
      const words = (text: string) => text.split(/\s+/).filter(Boolean);
      expect([status, words(stdout)]).to.deep.equal([0, words(section)]);
      const entryCount = section.split(/^- /m).length - 1;
      expect(stdout.split("\n").filter((line) => line.startsWith("- "))).to.have.length(entryCount);
      expect(stdout).not.to.match(/\n +(?![-*] )/);
    }
  });

  it("are rejected for a tag without a section", () => {
    for (const tag of ["v0.1", "v9.9.9", "0.2.0", "v"]) {
      const { status, stdout, stderr } = printNotes(tag);
      expect([tag, status, stdout]).to.deep.equal([tag, 1, ""]);
      expect(stderr).to.match(/^release-notes: (the tag must be|CHANGELOG\.md has no section)/);
    }
  });
});
