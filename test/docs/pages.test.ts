/** Checks that the docs agree with each other and with the code: links work, and the table of variables is complete. */
import { existsSync, readFileSync } from "node:fs";
import { dirname, join, normalize } from "node:path";
import { expect } from "chai";
import { CREDENTIAL_KINDS } from "../../src/data/credential.js";
import { ESTIMATED_SCHEDULED_RUNS_PER_CORE_AND_MINUTE } from "../../src/limits.js";
import { TICK_RESULTS } from "../../src/operations/watch/measures.js";
import { computeNextTicks } from "../../src/rules/schedule.js";
import { formatLocalTime } from "../../src/rules/zone-clock.js";
import { anchorOf, beginningOf, blocksOf, PAGES, ROOT, readPage } from "./pages.js";

const proseOf = (page: string) =>
  readPage(page)
    .replaceAll(/^```[\s\S]*?^```$/gm, "")
    .replaceAll(/`[^`\n]*`/g, "");

/** Names that several pages can use in one app: they only occur in payloads, or as names of tokens. */
const SHARED_NAMES = ["Ada", "Ann", "test", "you"];

function namesCreatedIn(page: string): string[] {
  const shell = blocksOf(readPage(page)).filter(({ language, notRun }) => language === "sh" && notRun === null);
  const names = shell.flatMap(({ text }) =>
    [...text.matchAll(/(?:"name\\?": \\?|\bname: )"([^"\\]+)/g)].map(([, name]) => name!),
  );
  return [...new Set(names)].filter((name) => !SHARED_NAMES.includes(name));
}

/** Returns the whole-line comments of shell commands, and the commands without comments, quoted texts and command substitutions. */
function splitShell(text: string): { comments: string[]; commands: string } {
  const withoutFiles = text.replaceAll(/<<'(\w+)'[\s\S]*?^\1$/gm, "");
  const comments = [...withoutFiles.matchAll(/^\s*#.*$/gm)].map(([line]) => line.trim());
  let commands = withoutFiles.replaceAll(/^\s*#.*$/gm, "").replaceAll(/'[^']*'|"[^"]*"/g, "q");
  while (/\$\([^()]*\)/.test(commands)) commands = commands.replaceAll(/\$\([^()]*\)/g, "s");
  return { comments, commands };
}

const anchorsIn = (file: string) =>
  [...readFileSync(file, "utf8").matchAll(/^#+ (.+)$/gm)].map(([, heading]) => anchorOf(heading!.replaceAll("`", "")));

describe("the documentation", () => {
  it("links to files and headings that exist", () => {
    const faulty: string[] = [];
    for (const page of PAGES) {
      for (const [, target = ""] of proseOf(page).matchAll(/\]\(([^)\s]+)\)/g)) {
        if (/^[a-z]+:/.test(target)) continue;
        const [path = "", anchor] = target.split("#");
        const file = path === "" ? join(ROOT, page) : join(ROOT, normalize(join(dirname(page), path)));
        const isThere = existsSync(file) && (anchor === undefined || anchorsIn(file).includes(anchor));
        if (!isThere) faulty.push(`${page}: ${target}`);
      }
    }
    expect(faulty).to.deep.equal([]);
  });

  it("has a key, a passphrase or --unencrypted in each command that makes a backup, because the command fails without", () => {
    const commands = PAGES.flatMap((page) => readPage(page).match(/\bnpm run (?:--silent )?backup -- [^`\n]+/g) ?? []);
    expect(commands).to.not.be.empty;
    const failing = commands.filter((command) => !/ --(?:key-file|passphrase-file|unencrypted)\b/.test(command));
    expect(failing).to.deep.equal([]);
  });

  it("has every page in its index", () => {
    const index = readPage("docs/README.md");
    const missing = PAGES.filter((page) => page.startsWith("docs/") && page !== "docs/README.md")
      .map((page) => page.slice("docs/".length))
      .filter((page) => !index.includes(`](${page})`));
    expect(missing).to.deep.equal([]);
  });

  it("answers at least 40 questions on the first page, each by a link to a page", () => {
    const index = readPage("docs/README.md");
    const questions = [...index.matchAll(/^\| [^|]+\? \| (.+) \|$/gm)];
    expect(questions.length).to.be.above(39);
    expect(questions.filter(([, answer]) => !/\]\([^)]+\.md(?:#[\w-]+)?\)/.test(answer!))).to.deep.equal([]);
  });

  it("has guides of at most 100 lines, about one screen", () => {
    const long = PAGES.filter((page) => page.startsWith("docs/guides/")).filter(
      (page) => readPage(page).split("\n").length > 100,
    );
    expect(long).to.deep.equal([]);
  });

  it("has the real behavior of a schedule in the two nights when the clock changes", () => {
    const at = (frequency: string, from: string, count: number) =>
      computeNextTicks(frequency, "Europe/Berlin", new Date(from), count).map((tick) =>
        formatLocalTime(tick, "Europe/Berlin").slice(8, 16),
      );
    const [march, october] = ["2027-03-28T00:00:00Z", "2027-10-31T00:00:00Z"];
    expect(at("30 2 * * *", march, 2)).to.deep.equal(["28T03:00", "29T02:30"]);
    expect(at("30 2 * * *", october, 2)).to.deep.equal(["31T02:30", "01T02:30"]);
    expect(at("30 * * * *", march, 2)).to.deep.equal(["28T01:30", "28T03:30"]);
    expect(at("30 * * * *", october, 3)).to.deep.equal(["31T02:30", "31T02:30", "31T03:30"]);
    const page = readPage("docs/guides/schedules.md");
    expect(page).to.contain("| `30 2 * * *`, one time of day | runs once, at 3:00 summer time");
    expect(page).to.contain("| `30 * * * *`, every hour | runs at 1:30 and 3:30");
  });

  it("lists every kind of token that an operator makes, and every reason for a skipped tick", () => {
    const api = readPage("docs/reference/api.md");
    expect(CREDENTIAL_KINDS.filter((kind) => !api.includes(`| \`${kind}\` | \`--`))).to.deep.equal([]);
    const triggers = readPage("docs/reference/triggers.md");
    const skipped = TICK_RESULTS.filter((fate) => fate !== "queued");
    expect(skipped.filter((fate) => !triggers.includes(` | \`${fate}\` | `))).to.deep.equal([]);
  });

  it("gives the number of scheduled runs for each core that Studio warns about", () => {
    const section = readPage("docs/operate/several-machines.md").split(
      "## Scheduled runs that are due in one minute",
    )[1]!;
    const prose = [...section.matchAll(/\b(\d+)\s+of these runs for each core/g)].map(([, count]) => Number(count));
    expect(prose).to.deep.equal([
      ESTIMATED_SCHEDULED_RUNS_PER_CORE_AND_MINUTE,
      ESTIMATED_SCHEDULED_RUNS_PER_CORE_AND_MINUTE,
    ]);
    expect(section).to.contain(`max(svc_schedule_ticks_due) > 4 * ${ESTIMATED_SCHEDULED_RUNS_PER_CORE_AND_MINUTE}\n`);
  });

  it("has each page that the help of Studio opens", () => {
    const help = readFileSync(join(ROOT, "src/web/studio/docs/help-pages.ts"), "utf8");
    const paths = [...help.matchAll(/: "([a-z]+\/[a-z-]+)"/g)].map(([, path]) => `docs/${path}.md`);
    expect(paths.length).to.be.above(20);
    expect(paths.filter((path) => !PAGES.includes(path))).to.deep.equal([]);
  });

  it("gives each name on one page only, so that a reader can paste all pages into one app", () => {
    const created = PAGES.flatMap((page) => namesCreatedIn(page).map((name) => ({ page, name })));
    expect(created.length).to.be.above(80);
    const taken = created.filter(({ name }, at) => created.findIndex((other) => other.name === name) < at);
    expect(taken.map(({ page, name }) => `${page}: ${name}`)).to.deep.equal([]);
  });

  it("does not create the action of the command line's template again, which README.md and the page on commands push", () => {
    const others = PAGES.filter((page) => namesCreatedIn(page).includes("hello"));
    expect(others).to.deep.equal([]);
  });

  it("shows the error of the service where a command needs a value of its response", () => {
    const commands = PAGES.flatMap((page) => {
      const shell = blocksOf(readPage(page)).filter(({ language, notRun }) => language === "sh" && notRun === null);
      return shell.flatMap(({ text }) =>
        (text.match(/node -p '[^']+'/g) ?? []).map((command) => `${page}: ${command}`),
      );
    });
    const reading = commands.filter((command) => /JSON\.parse\(\w*\.?readFileSync\([^)]*\)/.test(command));
    expect(reading.length).to.be.above(50);
    expect(reading.filter((command) => !/if \(error\) throw error|openapi|\.paths\)/.test(command))).to.deep.equal([]);
  });

  it("has shell commands that zsh runs as bash does", () => {
    const faulty = PAGES.flatMap((page) =>
      blocksOf(readPage(page)).flatMap(({ language, text, line }) => {
        if (language !== "sh") return [];
        const { comments, commands } = splitShell(text);
        const of = (fault: string, found: readonly string[] | null) =>
          (found ?? []).map((part) => `${page}:${line} ${fault}: ${part.trim()}`);
        return [
          // By default, zsh passes a comment after a command to this command as arguments.
          ...of("comment after a command", commands.match(/\S.*\s#.*/g)),
          ...of(
            "comment with a sign of the shell",
            comments.filter((comment) => !/^#[\w ,.:/-]*$/.test(comment)),
          ),
          // zsh does not split the value of a variable into words.
          ...of("loop over a variable", commands.match(/\bfor \w+ in [^;\n]*\$.*/g)),
          // In zsh, `read -p` reads from a coprocess instead of showing a prompt.
          ...of("read with a prompt", commands.match(/\bread -p.*/g)),
        ];
      }),
    );
    expect(faulty).to.deep.equal([]);
  });

  it("says before the first block of a reference page that later sections use its variables", () => {
    const hint = /All commands of this page use the variables of this block:/;
    const withoutHint = PAGES.filter((page) => page.startsWith("docs/reference/")).filter((page) => {
      const [first, ...others] = blocksOf(readPage(page)).filter(({ language }) => language === "sh");
      const set = [...(first?.text ?? "").matchAll(/(?:^| )([A-Z][A-Z0-9_]*)=/gm)].map(([, name]) => name!);
      const isUsed = set.some((name) =>
        others.some(
          ({ text, section }) =>
            section !== first!.section &&
            new RegExp(`\\$${name}\\b`).test(text) &&
            !new RegExp(`(?:^| )${name}=`, "m").test(text),
        ),
      );
      return isUsed && !hint.test(readPage(page));
    });
    expect(withoutHint).to.deep.equal([]);
  });

  it("lists each alerting rule of deploy/alerts.yaml on the page about metrics", () => {
    const names = [...readFileSync(join(ROOT, "deploy/alerts.yaml"), "utf8").matchAll(/^ +- alert: (\w+)$/gm)];
    const page = readPage("docs/operate/watching.md");
    expect(names.length).to.be.above(10);
    expect(names.map(([, name]) => name!).filter((name) => !page.includes(`| \`${name}\` | `))).to.deep.equal([]);
  });

  it("has no indented blocks, which no test would run", () => {
    const indented = PAGES.flatMap((page) =>
      readPage(page)
        .split("\n")
        .flatMap((line, at) => (/^\s+```/.test(line) ? [`${page}:${at + 1}`] : [])),
    );
    expect(indented).to.deep.equal([]);
  });

  it("shows the workflows of examples/ci", () => {
    const shownIn = (page: string) =>
      blocksOf(readPage(page))
        .filter(({ language }) => language === "yaml")
        .map(({ text }) => text);
    expect(shownIn("docs/guides/deploy-from-github.md")).to.deep.equal([readPage("examples/ci/github-workflow.yml")]);
    expect(shownIn("docs/guides/deploy-to-two-apps.md")).to.deep.equal([readPage("examples/ci/github-two-apps.yml")]);
  });

  it("has unique file names, because addresses without a section redirect to them", () => {
    const names = PAGES.map((page) => page.split("/").at(-1)!).filter((name) => name !== "README.md");
    expect(names.filter((name, at) => names.indexOf(name) !== at)).to.deep.equal([]);
  });

  it("has a README of at most 160 lines, about two screens", () => {
    expect(readPage("README.md").split("\n").length).to.be.below(161);
  });

  it("only names test files that exist in the marks of its blocks", () => {
    const missing = PAGES.flatMap((page) =>
      blocksOf(readPage(page))
        .flatMap(({ notRun }) => notRun?.match(/\btest\/[\w./-]+\.ts/g) ?? [])
        .filter((file) => !existsSync(join(ROOT, file)))
        .map((file) => `${page}: ${file}`),
    );
    expect(missing).to.deep.equal([]);
  });

  it("reads the marks of its blocks", () => {
    const text =
      "# a\n<!-- begins with: x.md#y -->\n## B c\n<!-- not run: because -->\n```sh\nx\n```\n<!-- file: f.js -->\n```js\ny\n```\n";
    expect(beginningOf(text)).to.deep.equal({ page: "x.md", section: "y", isFirstBlock: false });
    const short = "<!-- begins with: x.md#y, first block -->\n";
    expect(beginningOf(short)).to.deep.equal({ page: "x.md", section: "y", isFirstBlock: true });
    const [first, second] = blocksOf(text);
    expect(first).to.deep.equal({
      line: 5,
      language: "sh",
      text: "x\n",
      section: "b-c",
      notRun: "because",
      file: null,
      isResponse: false,
      isOutput: false,
    });
    expect(second).to.include({ notRun: null, file: "f.js", text: "y\n" });
  });
});
