/** Tests the steps in docs/reference/data-sources.md: pastes their commands into a shell, and opens the resulting page in a browser. */
import { mkdtempSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect } from "chai";
import type { Browser } from "puppeteer";
import { pastedShell } from "../docs/pasted-shell.js";
import { longTest } from "../harness/samples.js";
import { startTestService, type TestService } from "../harness/service.js";
import { launchChromium } from "./chromium.js";

const GUIDE_TEXT = readFileSync(
  fileURLToPath(new URL("../../../docs/reference/data-sources.md", import.meta.url)),
  "utf8",
);
const WALK_HEADING = "## From a file to a page";

/** Returns the commands to paste: those before the first section, then those of each step. */
function readSteps(): string[] {
  const commandsIn = (text: string) => [...text.matchAll(/^```sh\n(.*?)^```$/gms)].map(([, commands]) => commands!);
  const [beginning = "", ...sections] = GUIDE_TEXT.split(/^(?=## )/m);
  return [beginning, sections.find((section) => section.startsWith(WALK_HEADING)) ?? ""].flatMap(commandsIn);
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

  const toTestService = (commands: string) =>
    commands.replaceAll("http://127.0.0.1:4000", service.url).replaceAll("apps/1", `apps/${service.appId}`);

  longTest(
    "leads from a CSV to a page that lists it under rules, and to an action that reacts to an insert",
    async () => {
      const [first, file, action, page, trigger, ...more] = readSteps();
      expect(more).to.deep.equal([]);
      shell = pastedShell(folder);
      const pasteCommands = (commands: string) => shell!.paste(toTestService(commands));
      expect(await pasteCommands(first!)).to.contain('"name":"Seats"');
      expect(await pasteCommands(file!)).to.contain('{"inserted":2,');
      expect(await pasteCommands(action!)).to.contain('"result":[{"_id":"A","talks":1},{"_id":"B","talks":1}]');
      await pasteCommands(page!);
      const opened = await browser.newPage();
      await opened.goto(`${service.url}/apps/${service.appId}`);
      const talksText = '[...document.querySelectorAll("#talks li")].map((one) => one.textContent).join("|")';
      const waitForTalks = (...lines: string[]) =>
        opened.waitForFunction(`${talksText} === ${JSON.stringify(lines.join("|"))}`);
      await waitForTalks("Engines that compute, A", "On notation, B");
      await pasteCommands(trigger!);
      await waitForTalks("Engines that compute, A", "On notation, B", "The first bug, A, planned");
    },
  );
});
