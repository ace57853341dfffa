/** Tests `svc pull` and `svc push` if the same item differs in the folder and on the server. */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { startTestService, type TestService } from "../harness/service.js";
import { createSvcProjects, writeProjectFile as write } from "../harness/svc-projects.js";

describe("conflicts of the command line", () => {
  let service: TestService;
  const projects = createSvcProjects(() => service);
  const { json, svc, newProject } = projects;

  before(async () => {
    service = await startTestService({ ROLES: "api" });
  });
  after(async () => {
    await projects.cleanUp();
    await service?.stop();
  });

  it("advises a person whose first push would overwrite items of the server, so that the advice works", async () => {
    const first = await newProject();
    await json(first.folder, ["push"]);
    const file = "actions/hello/action.ts";
    const folders = await Promise.all([newProject(first.app), newProject(first.app)]);
    for (const { folder } of folders) {
      write(folder, file, readFileSync(join(folder, file), "utf8").replace("Greets a person.", "Says hello."));
      const { code, err } = await svc(folder, ["push", "--yes"]);
      expect([code, err]).to.match(
        /^1,.*run svc pull --force to keep the server's versions, or svc push --force to keep the folder's versions/s,
      );
    }
    const [pulling, pushing] = folders as [{ folder: string }, { folder: string }];
    await json(pulling.folder, ["pull", "--force"]);
    expect(readFileSync(join(pulling.folder, file), "utf8")).to.contain("Greets a person.");
    await json(pushing.folder, ["push", "--force"]);
    // The first folder has no unpushed changes, so a pull without a flag works.
    const behind = await svc(first.folder, ["push", "--yes"]);
    expect([behind.code, behind.err]).to.match(/^1,.*run svc pull, and then repeat svc push/s);
    await json(first.folder, ["pull"]);
    expect(readFileSync(join(first.folder, file), "utf8")).to.contain("Says hello.");
  });

  it("pulls without a flag if the same change was made in the folder and on the server", async () => {
    const first = await newProject();
    await json(first.folder, ["push"]);
    const second = await newProject(first.app);
    await json(second.folder, ["pull"]);
    const file = "actions/hello/action.ts";
    for (const { folder } of [first, second])
      write(folder, file, readFileSync(join(folder, file), "utf8").replace("Greets a person.", "Greets people."));
    await json(first.folder, ["push"]);
    expect((await json(second.folder, ["pull"])).pulled).to.deep.equal([
      { kind: "action", name: "hello", change: "changed" },
    ]);
    expect((await json(second.folder, ["status"])).behind).to.equal(false);
  });

  it("stops a pull if an item was removed on the server and changed in the folder", async () => {
    const { folder, app } = await newProject();
    await json(folder, ["push"]);
    const { actions } = (await service.rest("GET", `/v3/apps/${app}/actions`)).body;
    await service.rest("DELETE", `/v3/apps/${app}/actions/${actions[0].id}`);
    const file = join(folder, "actions/hello/action.ts");
    writeFileSync(file, readFileSync(file, "utf8").replace("Greets a person.", "Says hello."));
    const pushed = await svc(folder, ["push", "--yes"]);
    expect([pushed.code, pushed.err]).to.match(/^1,.*run svc pull --force to keep the server's versions/s);
    const { code, err } = await svc(folder, ["pull"]);
    expect([code, err]).to.match(
      /^1,error action hello changed in this folder and also on the server; run svc pull --force/,
    );
    expect(readFileSync(file, "utf8")).to.contain("Says hello.");
    await json(folder, ["pull", "--force"]);
    expect(existsSync(file)).to.equal(false);
  });

  it("stops a pull if the same item was created in the folder and on the server", async () => {
    const first = await newProject();
    await json(first.folder, ["push"]);
    const second = await newProject(first.app);
    await json(second.folder, ["pull", "--force"]);
    const createFiles = (folder: string, word: string) => {
      const code = readFileSync(join(folder, "actions/hello/action.ts"), "utf8");
      write(folder, "actions/parting/action.ts", code.replace("Greets a person.", `Says ${word}.`));
      writeFileSync(join(folder, "settings.json"), JSON.stringify([{ key: "word", tier: "public", value: word }]));
    };
    createFiles(first.folder, "bye");
    createFiles(second.folder, "farewell");
    await json(first.folder, ["push"]);
    const { code, err } = await svc(second.folder, ["pull"]);
    expect([code, err]).to.match(/^1,.*setting word, action parting changed in this folder and also on the server/s);
    expect(readFileSync(join(second.folder, "actions/parting/action.ts"), "utf8")).to.contain("Says farewell.");
    await json(second.folder, ["pull", "--force"]);
    expect(readFileSync(join(second.folder, "actions/parting/action.ts"), "utf8")).to.contain("Says bye.");
  });
});
