/** Command `npm run pictures`: takes new screenshots for the documentation, in a service with the example app. */
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { launch } from "puppeteer";
import sharp from "sharp";
import { findChromium, getDefaultChromiumPaths } from "../dist/src/engine/chromium-path.mjs";
import { startProcess } from "../dist/test/harness/process.js";

const ROOT = fileURLToPath(new URL("../", import.meta.url));
const PICTURES_FOLDER = `${ROOT}docs/pictures/`;
const PAGE_WIDTH = 1280;
/** Options of the PNG files. Screenshots have few colours, and a palette makes their files much smaller. */
const PNG_OPTIONS = { palette: true, colours: 128, compressionLevel: 9, effort: 10 };

async function installExample(service, url) {
  const env = { ...process.env, DATA_DIR: service.dataDir, SVC_TOKEN: service.credentials().tokens.editor };
  const args = ["scripts/example.mjs", "--url", url, "--app", "1"];
  const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: ROOT, env });
  return / with the password (\S+)\n$/.exec(stdout)[1];
}

async function takePicture(page, name) {
  const bytes = await page.screenshot({ type: "png" });
  const { size } = await sharp(bytes).png(PNG_OPTIONS).toFile(`${PICTURES_FOLDER}${name}.png`);
  process.stdout.write(`${name}.png ${Math.round(size / 1024)} KB\n`);
}

async function bookSeats(page, { url, password, guest, seats }) {
  await page.goto(`${url}/apps/1`);
  await page.waitForSelector("#bookings-seats button");
  await page.type("#bookings-guest [name=email]", guest);
  await page.type("#bookings-guest [name=password]", password);
  await page.click("#bookings-guest form button");
  await page.waitForFunction('document.querySelector("#bookings-note").textContent === "Choose a seat."');
  for (const seat of seats) {
    await page.click(`#bookings-seats button[aria-label="${seat}"]`);
    await page.waitForFunction(
      `document.querySelector("#bookings-note").textContent.startsWith("Thank you! Seat ${seat}")`,
    );
    await page.waitForSelector(`#bookings-seats button[aria-label="${seat}, taken"]`);
  }
}

const createTextSelector = (tag, text) => `::-p-xpath(//${tag}[normalize-space(.)="${text}"])`;

async function signIn(page, { url, token }) {
  await page.goto(`${url}/studio#/1/actions`);
  await page.waitForSelector('form[aria-busy="false"]');
  await page.locator(createTextSelector("button", "Use a token")).click();
  await page.locator('input[name="token"]').wait();
  await page.type('input[name="token"]', token);
  await page.click(createTextSelector("button", "Sign in"));
  await page.waitForSelector(".top-bar");
}

async function openStudio(page, path, selector) {
  await page.evaluate(`location.hash = ${JSON.stringify(`#/1/${path}`)}`);
  await page.waitForSelector(selector);
  await page.waitForNetworkIdle({ idleTime: 500 });
}

async function takeAllPictures(browser, service) {
  const url = await service.ready();
  const { editor } = service.credentials().tokens;
  const password = await installExample(service, url);
  const newPage = async (height) => {
    const page = await (await browser.createBrowserContext()).newPage();
    await page.setViewport({ width: PAGE_WIDTH, height });
    return page;
  };
  const bob = await newPage(720);
  await bookSeats(bob, { url, password, guest: "bob@example.com", seats: ["A3", "B2", "B3"] });
  const ann = await newPage(500);
  await bookSeats(ann, { url, password, guest: "ann@example.com", seats: ["C4", "C5"] });
  await takePicture(ann, "bookings");

  const studio = await newPage(800);
  await signIn(studio, { url, token: editor });
  const list = await fetch(`${url}/v3/apps/1/actions`, { headers: { "Auth-token": editor } });
  const { id } = (await list.json()).actions.find(({ name }) => name === "bookings-book");
  await openStudio(studio, `actions/${id}`, ".code-editor .view-lines");
  await studio.focus(".payload textarea");
  await studio.keyboard.down("Control");
  await studio.keyboard.press("a");
  await studio.keyboard.up("Control");
  await studio.keyboard.sendCharacter('{ "seat": "A1" }');
  // This run books no seat: only guests can book, but Studio's editor starts it.
  await studio.click(".payload .primary");
  await studio.waitForSelector('.outcome[data-state="completed"]');
  await studio.waitForNetworkIdle({ idleTime: 500 });
  await takePicture(studio, "studio");
  await openStudio(studio, "outbox", ".message-line");
  await studio.click(".message-line");
  await studio.waitForSelector("iframe.mail-frame");
  await studio.waitForNetworkIdle({ idleTime: 500 });
  await takePicture(studio, "outbox");
}

const executablePath = findChromium(
  process.env.CHROME_PATH || null,
  getDefaultChromiumPaths(process.env.PUPPETEER_CACHE_DIR || null),
);
// Chromium's sandbox does not run as root. These pages are trusted.
const rootArguments = process.getuid?.() === 0 ? ["--no-sandbox"] : [];
const browser = await launch({ executablePath, pipe: true, args: ["--force-color-profile=srgb", ...rootArguments] });
const service = startProcess({ LOG_LEVEL: "info", NPM_PACKAGES: "off" });
try {
  await takeAllPictures(browser, service);
} finally {
  await browser.close();
  service.signal("SIGTERM");
  await service.ended;
  await service.clean();
}
