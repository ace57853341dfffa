/**
 * Tests the first walk-through of docs/reference/data-sources.md: pastes its commands into a shell and opens the resulting page in a
 * browser.
 */
import { mkdtempSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect } from "chai";
import type { Browser } from "puppeteer";
import { pastedShell } from "../docs/pasted-shell.js";
import { startTestService, type TestService } from "../harness/service.js";
import { launchChromium } from "./chromium.js";

const GUIDE = readFileSync(fileURLToPath(new URL("../../../docs/reference/data-sources.md", import.meta.url)), "utf8");
const SECTION = "## From a file to a page";

/** Returns the texts to paste: the commands before the walk-through, then one text for each step. */
function steps(): string[] {
  const end = GUIDE.indexOf("\n## ", GUIDE.indexOf(SECTION) + SECTION.length);
  return [...GUIDE.slice(0, end).matchAll(/^```sh\n(.*?)^```$/gms)].map(([, commands]) => commands!);
}

describe("the walk of docs/reference/data-sources.md", () => {
  let service: TestService;
  let browser: Browser;
  let shell: ReturnType<typeof pastedShell> | undefined;
  const folder = mkdtempSync(join(tmpdir(), "svc-walk-"));

  before(async () => {
    [service, browser] = await Promise.all([startTestService(), launchChromium()]);
    symlinkSync(service.dataDir, join(folder, ".data"));
  });
  after(async () => {
    await shell?.end();
    await browser?.close();
    await service?.stop();
    rmSync(folder, { recursive: true });
  });

  const local = (commands: string) =>
    commands.replaceAll("http://127.0.0.1:4000", service.url).replaceAll("apps/1", `apps/${service.appId}`);

  it("leads from a CSV to a page that lists it under rules, and to an action that reacts to an insert", async () => {
    const [first, file, action, page, trigger, ...more] = steps();
    expect(more).to.deep.equal([]);
    shell = pastedShell(folder);
    const paste = (commands: string) => shell!.paste(local(commands));
    expect(await paste(first!)).to.contain('"name":"Seats"');
    expect(await paste(file!)).to.contain('{"inserted":2,');
    expect(await paste(action!)).to.contain('"result":[{"_id":"A","talks":1},{"_id":"B","talks":1}]');
    await paste(page!);
    const opened = await browser.newPage();
    await opened.goto(`${service.url}/apps/${service.appId}`);
    const shown = '[...document.querySelectorAll("#talks li")].map((one) => one.textContent).join("|")';
    const shows = (...lines: string[]) => opened.waitForFunction(`${shown} === ${JSON.stringify(lines.join("|"))}`);
    await shows("Engines that compute, A", "On notation, B");
    await paste(trigger!);
    await shows("Engines that compute, A", "On notation, B", "The first bug, A, planned");
  });
});
