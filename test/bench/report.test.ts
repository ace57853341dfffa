/** Checks that BENCHMARKS.md and its drawings equal what the collected figures generate, without manual edits. */
import { existsSync, globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect } from "chai";
import { FIGURE_LOADERS } from "../../bench/figures.js";
import { FIGURE_INTRODUCTIONS } from "../../bench/report/introductions.js";
import { createReport } from "../../bench/report/page.js";
import { drawSvg } from "../../bench/report/plot.js";
import { readResults, type StoredFigures } from "../../bench/report/results.js";

const ROOT = fileURLToPath(new URL("../../../", import.meta.url));

const row = (callers: number, value: number, floor: number) => ({
  name: `${callers} callers`,
  value,
  unit: "/s",
  floor: { name: "bare", value: floor },
  size: { line: "runs", of: "callers", value: callers },
});
const FIGURES_WITH_SIZES: StoredFigures = {
  language: {
    ...{ title: "runs", day: "2026-01-02", node: "24.0.0", cores: 2, rounds: 3 },
    rows: [row(1, 80, 160), row(8, 120, 150), row(64, 135.25, 155), { name: "alone", value: 6.25, unit: "ms" }],
  },
};

describe("the report of the benchmarks", () => {
  it("is generated from the measured figures", () => {
    const made = createReport(readResults(join(ROOT, "bench/results.json")), Object.keys(FIGURE_LOADERS));
    const drawn = globSync("docs/pictures/bench/*.svg", { cwd: ROOT });
    expect(["BENCHMARKS.md", "docs/operate/capacity.md", ...drawn]).to.have.members(Object.keys(made));
    for (const [path, text] of Object.entries(made)) {
      expect(existsSync(join(ROOT, path)), path).to.equal(true);
      expect(readFileSync(join(ROOT, path), "utf8"), path).to.equal(text);
    }
  });

  it("has each figure beside its baseline, says where it was measured, and what is missing", () => {
    const { "BENCHMARKS.md": page } = createReport(FIGURES_WITH_SIZES, Object.keys(FIGURE_LOADERS));
    expect(page).to.contain("| 64 callers | 135.3 a second | 155 a second, bare | 0.87 |");
    expect(page).to.contain("| alone | 6.25 ms |  |  |");
    expect(page).to.contain("Measured 2026-01-02, Node 24.0.0, 2 cores, 3 rounds.");
    expect(page).to.match(/Not measured yet: `document`, /);
  });

  it("draws a figure of three sizes with its baseline, and none of fewer", () => {
    const { "docs/pictures/bench/language.svg": svg } = createReport(FIGURES_WITH_SIZES, ["language"]);
    expect(svg!.match(/<circle /g)).to.have.length(6);
    const few = {
      language: { ...FIGURES_WITH_SIZES["language"]!, rows: FIGURES_WITH_SIZES["language"]!.rows.slice(1) },
    };
    expect(Object.keys(createReport(few, ["language"]))).to.deep.equal(["BENCHMARKS.md"]);
  });

  it("keeps points inside the drawing and words out of its markup", () => {
    const points = [1, 1_000, 1_000_000].map((x) => ({ x, y: x / 3 }));
    const svg = drawSvg({ title: 'a <b> & "c"', xName: "x", unit: "ms", lines: [{ name: "<script>", points }] });
    expect(svg).to.contain("a &lt;b&gt; &amp; &quot;c&quot;, ms").and.not.contain("<script>");
    const found = [...svg.matchAll(/c[xy]="([^"]+)"/g)].map(([, at]) => Number(at));
    expect(found).to.have.length(6);
    for (const at of found) expect(at).to.be.within(0, 640);
  });

  it("has words for every figure", () => {
    expect(Object.keys(FIGURE_INTRODUCTIONS)).to.have.members(Object.keys(FIGURE_LOADERS));
  });
});
