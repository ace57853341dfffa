/**
 * Tests Studio's accounts in a real browser with a virtual authenticator: set-up, sign-in, passkeys, reset, OpenID, and an expired session.
 */
import { expect } from "chai";
import type { Browser, BrowserContext, Page } from "puppeteer";
import type { AccountModules } from "../../src/operations/accounts/people-accounts.js";
import { countLockWaits } from "../harness/lock-waits.js";
import { type MailServer, startMailServer } from "../harness/mail-server.js";
import { type OpenIdProviderServer, startOpenIdProvider } from "../harness/open-id-provider.js";
import { createAccounts, createSignedInPerson, PASSPHRASE } from "../harness/people.js";
import { resetDuring } from "../harness/resets.js";
import { longTest } from "../harness/samples.js";
import { startTestService, type TestService } from "../harness/service.js";
import { until } from "../harness/until.js";
import { launchChromium } from "./chromium.js";
import { checkWidths, PICTURES_FOLDER } from "./looks.js";
import { type StudioPage, studioPage } from "./studio-page.js";

describe("accounts in Studio", () => {
  let service: TestService;
  let browser: Browser;
  let provider: OpenIdProviderServer;
  let mail: MailServer;
  let accounts: AccountModules;
  let context: BrowserContext;
  let page: Page;
  let studio: StudioPage;
  /** URL of the service with the host name localhost, because passkeys do not work with an IP address. */
  let base: string;

  before(async () => {
    [provider, mail] = await Promise.all([startOpenIdProvider(), startMailServer()]);
    const { issuer, clientId, clientSecret } = provider;
    [service, browser] = await Promise.all([
      startTestService({
        ROLES: "api",
        OIDC_ISSUER: issuer,
        OIDC_CLIENT_ID: clientId,
        OIDC_CLIENT_SECRET: clientSecret,
        OIDC_AUTO_CREATE: "1",
        OIDC_ROLES: "staff=editor",
        SMTP_URL: `smtp://127.0.0.1:${mail.port}`,
        MAIL_FROM: "Service <service@example.com>",
      }),
      launchChromium(),
    ]);
    base = service.url.replace("127.0.0.1", "localhost");
    provider.redirectUris.push(`${base}/v1/auth/oidc/oidc/callback`);
    accounts = createAccounts(service);
  });
  after(async () => {
    await browser?.close();
    await service?.stop();
    await provider?.stop();
    await mail?.stop();
  });
  beforeEach(async () => {
    context = await browser.createBrowserContext();
    page = await context.newPage();
    studio = studioPage(page);
  });
  afterEach(async function () {
    if (PICTURES_FOLDER && this.currentTest?.state === "failed") {
      await page.screenshot({ path: `${PICTURES_FOLDER}/failed-${this.currentTest.title.slice(0, 20)}.png` });
    }
    await context.close();
  });

  async function addVirtualAuthenticator(): Promise<void> {
    const client = await page.createCDPSession();
    await client.send("WebAuthn.enable");
    await client.send("WebAuthn.addVirtualAuthenticator", {
      options: {
        protocol: "ctap2",
        transport: "internal",
        hasResidentKey: true,
        hasUserVerification: true,
        isUserVerified: true,
        automaticPresenceSimulation: true,
      },
    });
  }

  const fillField = (name: string, text: string) => studio.replace(`input[name="${name}"]`, text);
  const waitForForm = () => page.waitForSelector('form[aria-busy="false"]');
  let personCount = 0;
  async function openSetupLink(): Promise<string> {
    const { link } = await accounts.accounts.createSetupLink();
    await page.goto(link);
    await waitForForm();
    personCount += 1;
    const email = `browser${personCount}@example.com`;
    await fillField("firstName", "Grace");
    await fillField("lastName", "Hopper");
    await fillField("email", email);
    return email;
  }
  const waitForStudio = () => page.waitForSelector(".top-bar");
  async function signIn(email: string, passphrase = PASSPHRASE): Promise<void> {
    await page.goto(`${base}/studio`);
    await waitForForm();
    await fillField("email", email);
    await fillField("passphrase", passphrase);
    await studio.button("Sign in");
  }

  it("the first link creates an administrator by passphrase, and its token is in no address after it was read", async () => {
    const requested: string[] = [];
    // Removes the fragment, which Puppeteer adds to the URL of a request. Browsers do not send fragments to servers.
    page.on("request", (request) => requested.push(request.url().split("#")[0]!));
    const email = await openSetupLink();
    expect(await page.evaluate("location.href")).to.equal(`${base}/studio/setup`);
    expect(await page.evaluate("history.length")).to.be.below(3);
    await fillField("passphrase", "too short");
    expect(await page.$('button[type="submit"]:disabled')).to.not.equal(null);
    await fillField("passphrase", "passwordpassword");
    await studio.button("Create the account");
    await page.waitForFunction('/common/.test(document.querySelector("#sign-in-fault").textContent)');
    await checkWidths(page, "setup");
    await fillField("passphrase", PASSPHRASE);
    await studio.button("Create the account");
    await waitForStudio();
    expect(requested.filter((url) => url.includes("svc_setup"))).to.deep.equal([]);
    const session = await page.evaluate(`fetch("/v1/auth/session").then((answer) => answer.json())`);
    expect((session as { user: { email: string } }).user.email).to.equal(email);
    await studio.signOut();
    await waitForForm();
    await signIn(email, "not the passphrase");
    await page.waitForFunction('/is wrong/.test(document.querySelector("#sign-in-fault").textContent)');
    await checkWidths(page, "sign-in");
    await signIn(email);
    await waitForStudio();
  });

  longTest("a link that was used shows a message about it", async () => {
    const { link, token } = await accounts.accounts.createSetupLink();
    await accounts.links.redeem(token, "setup");
    await page.goto(link);
    await waitForForm();
    for (const name of ["firstName", "lastName"]) await fillField(name, "X");
    await fillField("email", "used@example.com");
    await fillField("passphrase", PASSPHRASE);
    await studio.button("Create the account");
    await page.waitForFunction('/Ask for a new one/.test(document.querySelector("#sign-in-fault").textContent)');
  });

  it("an account created with a passkey signs in with it, adds a passphrase, and keeps one way in", async () => {
    await addVirtualAuthenticator();
    const email = await openSetupLink();
    await studio.button("Use a passkey instead of a passphrase");
    await waitForStudio();
    await studio.signOut();
    await waitForForm();
    await studio.button("Sign in with a passkey");
    await waitForStudio();
    await studio.open("1/account");
    await page.waitForSelector('button[aria-label="Remove First passkey"]');
    await checkWidths(page, "account");
    expect(await page.$eval(".account a[href$='/oauth/programs']", (link) => link.textContent)).to.match(/^Programs/);
    await page.click('button[aria-label="Remove First passkey"]');
    await studio.button("Remove", "//dialog");
    await page.waitForFunction('/only way to sign in/.test(document.querySelector(".account > .fault").textContent)');
    await studio.replace('input[autocomplete="new-password"]', PASSPHRASE);
    await studio.button("Change the passphrase");
    await page.waitForFunction('/Changed/.test(document.querySelector(".account form [role=status]").textContent)');
    await page.click('button[aria-label="Remove First passkey"]');
    await studio.button("Remove", "//dialog");
    await page.waitForFunction("!document.querySelector('button[aria-label=\"Remove First passkey\"]')");
    await studio.signOut();
    await waitForForm();
    await signIn(email);
    await waitForStudio();
  });

  it("registers no passkey while a reset ends the session, and a removed passkey signs nobody in", async () => {
    await addVirtualAuthenticator();
    const { user, token } = await createSignedInPerson(service);
    await context.setCookie({ name: "auth_token", value: token, domain: "localhost", path: "/", httpOnly: true });
    await page.goto(`${base}/studio`);
    const post = (path: string, body: string) =>
      page.evaluate(`(async () => {
        const send = (path, body) => fetch("/v1/auth/passkeys" + path, {
          method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body),
        });
        return (await send(${JSON.stringify(path)}, ${body})).status;
      })()`);
    const options = (path: string) => `await (await send("${path}", {})).json()`;
    const register = () =>
      post(
        "",
        `(await navigator.credentials.create({ publicKey: PublicKeyCredential.parseCreationOptionsFromJSON(
        ${options("/registration-options")}) })).toJSON()`,
      );
    const signInByPasskey = () =>
      post(
        "/sign-in",
        `(await navigator.credentials.get({ publicKey: PublicKeyCredential.parseRequestOptionsFromJSON(
        ${options("/authentication-options")}) })).toJSON()`,
      );
    expect(await register()).to.equal(201);
    expect(await signInByPasskey()).to.equal(200);
    let outcome: Promise<unknown> | undefined;
    await service.db.transaction(async (manager) => {
      await manager.query("DELETE FROM passkey WHERE person_id = $1", [user.id]);
      await manager.query("SELECT FROM person WHERE id = $1 FOR NO KEY UPDATE", [user.id]);
      outcome = signInByPasskey();
      await until(async () => (await countLockWaits(manager)) > 0);
    });
    expect(await outcome).to.equal(401);
    expect(await resetDuring(service, user.id, register)).to.equal(401);
  });

  longTest("a passkey of another host, a challenge of another session and a used one do not sign in", async () => {
    await addVirtualAuthenticator();
    await openSetupLink();
    await studio.button("Use a passkey instead of a passphrase");
    await waitForStudio();
    const signInOutcome = await page.evaluate(`(async () => {
      const post = async (path, body) => {
        const answer = await fetch("/v1/auth/passkeys" + path, {
          method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body ?? {}),
        });
        return { http: answer.status, body: await answer.json() };
      };
      const sign = async () => {
        const { body } = await post("/authentication-options");
        const publicKey = PublicKeyCredential.parseRequestOptionsFromJSON(body);
        return (await navigator.credentials.get({ publicKey })).toJSON();
      };
      const proof = await sign();
      const first = await post("/sign-in", proof);
      const again = await post("/sign-in", proof);
      const registration = await post("/registration-options");
      const forged = await sign();
      const data = JSON.parse(atob(forged.response.clientDataJSON.replaceAll("-", "+").replaceAll("_", "/")));
      const encode = (value) => btoa(JSON.stringify(value)).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
      const withData = (change) => ({ ...forged, response: { ...forged.response, clientDataJSON: encode({ ...data, ...change }) } });
      return [
        first.http, again.http,
        (await post("/sign-in", withData({ challenge: registration.body.challenge }))).http,
        (await post("/sign-in", withData({ origin: "https://evil.example" }))).http,
        (await post("/sign-in", { id: "x", response: {} })).http,
        (await post("/sign-in", {})).http,
      ];
    })()`);
    expect(signInOutcome).to.deep.equal([200, 401, 401, 401, 401, 400]);
  });

  longTest("an invitation creates an account, or adds its role to the account of the browser", async () => {
    const invite = async (email: string, role: string) => {
      const body = { email, role };
      const path = `/v1/organizations/${service.organizationId}/invitations`;
      const answer = await service.rest("POST", path, { as: "admin", body });
      return answer.body.link as string;
    };
    await page.goto(await invite("invited@example.com", "reader"));
    await waitForForm();
    await fillField("firstName", "Mary");
    await fillField("lastName", "Allen");
    await fillField("passphrase", PASSPHRASE);
    await checkWidths(page, "invitation");
    await studio.button("Create the account");
    await waitForStudio();
    const roleOf = () =>
      page.evaluate(`fetch("/v1/auth/session").then((a) => a.json()).then((s) => s.organizations[0].role)`);
    expect(await roleOf()).to.equal("reader");
    await page.goto(await invite("invited@example.com", "editor"));
    await waitForForm();
    await studio.button("I have an account: accept with it");
    await waitForStudio();
    expect(await roleOf()).to.equal("editor");
  });

  longTest("a reset link from an administrator changes the passphrase", async () => {
    const { user, email } = await createSignedInPerson(service);
    const { link } = await accounts.accounts.createResetLink(user.id, { personId: null }, async () => undefined);
    await page.goto(link.replace(service.url, base));
    await waitForForm();
    await fillField("passphrase", "another long passphrase");
    await checkWidths(page, "reset");
    await studio.button("Change the passphrase");
    await studio.button("Go to the sign-in");
    await signIn(email, "another long passphrase");
    await waitForStudio();
  });

  it("a person requests a reset link on the sign-in page, gets it by mail and changes the passphrase", async () => {
    const { email } = await createSignedInPerson(service);
    const before = mail.acceptedMessages.length;
    await page.goto(`${base}/studio`);
    await waitForForm();
    await studio.button("Forgot your passphrase?");
    await fillField("email", email);
    await studio.button("Send the link");
    await page.waitForFunction('/on its way/.test(document.querySelector("form [role=status]")?.textContent)');
    await checkWidths(page, "forgot");
    await mail.waitForMessages(before + 1);
    const link = /http\S+/.exec(mail.acceptedMessages.at(-1)!.text.replace(/=\r\n/g, "").replaceAll("=3D", "="))![0];
    expect(link).to.match(new RegExp(`^${base}/studio/reset#token=`));
    await page.goto(link);
    await waitForForm();
    await fillField("passphrase", "a passphrase that came by mail");
    await studio.button("Change the passphrase");
    await studio.button("Go to the sign-in");
    await signIn(email, "a passphrase that came by mail");
    await waitForStudio();
  });

  longTest("signs in at an OpenID provider with a group's role, and explains a rejection", async () => {
    provider.accounts.set("one", {
      email: "one@example.com",
      email_verified: true,
      name: "One Person",
      groups: ["staff"],
    });
    provider.current = "one";
    await page.goto(`${base}/studio#/1/runs`);
    await waitForForm();
    await studio.button("Sign in with OpenID");
    await waitForStudio();
    expect(await page.evaluate("location.href")).to.equal(`${base}/studio#/1/runs`);
    const session = (await page.evaluate(`fetch("/v1/auth/session").then((answer) => answer.json())`)) as {
      organizations: { role: string }[];
    };
    expect(session.organizations.map(({ role }) => role)).to.deep.equal(["editor"]);
    await context.deleteCookie(...(await context.cookies()));
    const { email } = await createSignedInPerson(service);
    provider.accounts.set("two", { email, email_verified: true, name: "Two Person", groups: ["staff"] });
    provider.current = "two";
    await page.goto(`${base}/studio`);
    await waitForForm();
    await studio.button("Sign in with OpenID");
    await page.waitForFunction(
      '/An account with your e-mail address exists/.test(document.querySelector("#sign-in-fault")?.textContent)',
    );
    expect(await page.evaluate("location.search")).to.equal("");
    await checkWidths(page, "refused");
  });

  longTest(
    "an expired session opens a sign-in over the page; nothing is lost, and the request is sent again",
    async () => {
      const { user, email, token } = await createSignedInPerson(service);
      await context.setCookie({ name: "auth_token", value: token, domain: "localhost", path: "/", httpOnly: true });
      await page.goto(`${base}/studio#/1/app`);
      await waitForStudio();
      const name = 'input[aria-label="Name of the app"]';
      await studio.replace(name, "Renamed after a break");
      await accounts.sessions.endAllSessions(user.id);
      // The test has ended the session without a request. So it waits until the service has read the notification of this change.
      await until(async () => (await service.rest("GET", "/v1/apps", { as: token })).http === 401);
      // A background request may already have opened the dialog over the button. A click of the mouse would then hit the dialog.
      await page.$eval(studio.withText("button[not(@disabled)]", "Rename"), (element) =>
        (element as unknown as { click(): void }).click(),
      );
      await page.waitForSelector("dialog[open] input[name=passphrase]");
      await checkWidths(page, "expired");
      // If another person signs in, Studio must neither send the waiting request nor close the dialog.
      const other = await createSignedInPerson(service);
      await studio.replace("dialog input[name=email]", other.email);
      await fillField("passphrase", PASSPHRASE);
      await studio.button("Sign in", "//dialog");
      await page.waitForFunction(
        `document.querySelector("dialog[open]").textContent.includes(${JSON.stringify(`${other.email} is signed in now`)})`,
      );
      expect((await service.rest("GET", "/v1/apps")).body.apps[0].name).to.not.equal("Renamed after a break");
      await studio.replace("dialog input[name=email]", email);
      expect(await page.evaluate(`document.querySelector(${JSON.stringify(name)}).value`)).to.equal(
        "Renamed after a break",
      );
      await fillField("passphrase", PASSPHRASE);
      await studio.button("Sign in", "//dialog");
      await page.waitForFunction("!document.querySelector('dialog[open]')");
      await page.waitForFunction('document.querySelector(".app-button b").textContent === "Renamed after a break"');
      const { body } = await service.rest("GET", "/v1/apps");
      expect(body.apps[0].name).to.equal("Renamed after a break");
    },
  );
});
