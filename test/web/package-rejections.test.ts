/** Tests that the functions of the service's packages reject wrong arguments with `{status, error}`, and that no call throws or hangs. */
import { expect } from "chai";
import { STATUS } from "../../src/errors.js";
import { longTest } from "../harness/samples.js";
import { startTestService, type TestService } from "../harness/service.js";

/** Calls that the test skips, because they send no request, or need a page with a signed-in user. */
const SKIPPED_CALLS = ["subscribe", "unsubscribe", "stream", "init", "composeEmail", "shareURL", "logout"];

const WRONG_ARGUMENTS = [
  "",
  "undefined",
  "null",
  "0",
  "-1",
  "1.5",
  '"."',
  '".."',
  '""',
  "{}",
  "[]",
  "0, {}",
  '"..", {}',
];
const ARGUMENT_LISTS = `[${WRONG_ARGUMENTS.map((argument) => `[${argument}]`)}]`;

const ACTION_CODE = `async function execute() {
  const ARGUMENT_LISTS = ${ARGUMENT_LISTS};
  const connection = await Svc.DataSources.connect(0);
  const groups = { DataSources: Svc.DataSources, connection, Folders: Svc.Media.Folders, Files: Svc.Media.Files,
    Notifications: Svc.Notifications, Communicate: Svc.Communicate, Session: { set: Svc.Session.set, authorize: Svc.Session.authorize } };
  const faults = [];
  let calls = 0;
  for (const [group, members] of Object.entries(groups)) {
    for (const [name, call] of Object.entries(members)) {
      if (typeof call !== "function" || ${JSON.stringify(SKIPPED_CALLS)}.includes(name)) continue;
      for (const given of ARGUMENT_LISTS) {
        calls += 1;
        const title = group + "." + name + "(" + JSON.stringify(given) + ")";
        let answer;
        try {
          answer = call(...given);
        } catch (error) {
          faults.push(title + " threw " + error);
          continue;
        }
        await Promise.resolve(answer).catch((error) => {
          if (typeof error?.status !== "string" || error.error !== error.message) faults.push(title + " rejected with " + error);
          else if (error.status === "INTERNAL_ERROR") faults.push(title + " is " + error.status);
        });
      }
    }
  }
  return { calls, faults };
}`;

describe("a call of a package with wrong arguments", () => {
  let service: TestService;
  before(async () => {
    service = await startTestService({ ROLES: "api,runner" });
  });
  after(() => service.stop());

  longTest("rejects with the error body, for every call and argument", async () => {
    const { body } = await service.rest("POST", `/v3/apps/${service.appId}/actions`, {
      body: {
        name: "wrong",
        code: ACTION_CODE,
        active: true,
        triggers: [{ trigger: "manual" }],
        dependencies: ["svc-datasources", "svc-media", "svc-notifications", "svc-communicate", "svc-session"],
      },
    });
    expect(body.status).to.equal("ACTION_CREATED");
    const run = await service.rest("POST", `/v3/apps/${service.appId}/actions/wrong/runWithResult`, { body: {} });
    expect(run.body.result?.faults, JSON.stringify(run.body)).to.deep.equal([]);
    expect(run.body.result.calls).to.be.above(300);
  });

  it("names what is missing, by the status of the resource", async () => {
    const code = `async function execute() {
      const { connect } = Svc.DataSources;
      const status = (call) => call.then(() => "nothing", (error) => error.status);
      return [await status((await connect(1)).findById(0)), await status((await connect("")).find()), await status(Svc.Media.Files.get(0)),
        await status(Svc.Media.Folders.delete("..")), await status((await connect(1)).remove()),
        await status((await connect(1)).find(null)), await status(Svc.Communicate.sendPushNotification())];
    }`;
    await service.rest("POST", `/v1/apps/${service.appId}/data-sources`, { body: { name: "One" } });
    await service.rest("POST", `/v3/apps/${service.appId}/actions`, {
      body: {
        name: "missing",
        code,
        active: true,
        triggers: [{ trigger: "manual" }],
        dependencies: ["svc-datasources", "svc-media", "svc-communicate"],
      },
    });
    const run = await service.rest("POST", `/v3/apps/${service.appId}/actions/missing/runWithResult`, { body: {} });
    const expected = [
      "ENTRY_NOT_FOUND",
      "DATA_SOURCE_NOT_FOUND",
      "FILE_NOT_FOUND",
      "FOLDER_NOT_FOUND",
      "REQUEST_INVALID",
      "REQUEST_INVALID",
      "REQUEST_INVALID",
    ];
    expect(run.body.result, JSON.stringify(run.body)).to.deep.equal(expected);
    for (const status of expected) expect(STATUS).to.have.property(status);
  });
});
