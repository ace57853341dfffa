/**
 * Runs the scripts of github-workflow.yml (for a push to main) and gitlab-ci.yml in examples/ci against a service. Imitates the shells and
 * environments of GitHub and GitLab. Each job clones this repository. Needs npm's registry. Takes minutes, because each job installs all packages.
 */
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { cpSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { runInNewContext } from "node:vm";
import { expect } from "chai";
import { load } from "js-yaml";
import { ROOT } from "../harness/reader.js";
import { startTestService, type TestService } from "../harness/service.js";
import { createSvcProjects } from "../harness/svc-projects.js";

/** Variables and settings with which the machine's npm reaches its registry, and with which the service finds a browser. */
const MACHINE = {
  ...Object.fromEntries(
    Object.entries(process.env).filter((entry): entry is [string, string] =>
      /^(?:PATH|https?_proxy|no_proxy|NODE_EXTRA_CA_CERTS|CHROMIUM_PATH|PUPPETEER_\w+)$/i.test(entry[0]),
    ),
  ),
  npm_config_userconfig: join(homedir(), ".npmrc"),
  npm_config_cache: join(homedir(), ".npm"),
};

type Environment = Record<string, string>;

interface GithubStep {
  name?: string;
  uses?: string;
  run?: string;
  if?: string;
  env?: Environment;
}

interface GithubWorkflow {
  env: Environment;
  jobs: Record<string, { steps: GithubStep[] }>;
}

type GitlabJob = { extends?: string; before_script?: string[]; script?: string[] };

const template = <T>(file: string): T => load(readFileSync(join(ROOT, "examples/ci", file), "utf8")) as T;

describe("the templates for CI", function () {
  this.timeout(3_600_000);
  let service: TestService;
  const projects = createSvcProjects(() => service);
  let repository: string;

  before(async () => {
    service = await startTestService();
    repository = join(projects.newFolder(), "svc.git");
    execFileSync("git", ["init", "--quiet", "--bare", "--initial-branch=main", repository]);
    execFileSync("git", ["push", "--quiet", repository, "HEAD:refs/heads/main"], { cwd: ROOT });
  });
  after(async () => {
    await projects.cleanUp();
    await service?.stop();
  });

  /** Runs the text as a script of bash. Returns its output and its error output. @throws Error with both if the exit code is not 0 */
  async function runScript(script: string, flags: string[], cwd: string, env: Environment): Promise<string> {
    const file = join(projects.newFolder(), "step.sh");
    writeFileSync(file, script);
    const child = spawn("bash", [...flags, file], { cwd, env, stdio: ["ignore", "pipe", "pipe"] });
    const [out, err] = [text(child.stdout), text(child.stderr)];
    const [code] = (await once(child, "close")) as [number | null];
    expect(code, `${script}\n${await out}${await err}`).to.equal(0);
    return (await out) + (await err);
  }

  /**
   * Creates an app with an action that a person has written in Studio. Returns the folder of the app's project, and the variables and
   * secrets for the settings of the CI.
   */
  async function newRepository() {
    const { folder, app } = await projects.newProject();
    const body = { name: "hello", code: "async function execute() {}", description: "Changed in Studio." };
    await service.rest("POST", `/v3/apps/${app}/actions`, { body });
    const scopes = ["manage", "publish"];
    const token = { kind: "api", name: "ci", scopes };
    const SVC_TOKEN = (await service.rest("POST", `/v1/apps/${app}/tokens`, { body: token })).body.token;
    const variables = { SVC_URL: service.url, SVC_APP: String(app), SVC_REPOSITORY: `file://${repository}` };
    return { folder, variables, secrets: { SVC_TOKEN } };
  }

  const runLive = (folder: string) => projects.svc(folder, ["run", "hello", "--live", "--json"]);

  /** Creates an empty home folder, and copies the repository into it, as the checkout of a job does. */
  function newJob(folder: string): { cwd: string; home: string } {
    const home = projects.newFolder();
    const cwd = join(home, "checkout");
    cpSync(folder, cwd, { recursive: true, filter: (path) => !/\.(?:svc|config)$/.test(path) });
    return { cwd, home };
  }

  /** Returns the steps that GitHub runs for the event `github`, except steps that use actions of other repositories. */
  const stepsFor = (github: Environment): GithubStep[] =>
    template<GithubWorkflow>("github-workflow.yml").jobs["svc"]!.steps.filter(
      (step) => step.run !== undefined && (step.if === undefined || runInNewContext(step.if, { github }) === true),
    );

  it("of GitHub checks a pull request, and publishes a push to the main branch", async () => {
    const namesFor = (github: Environment) => stepsFor(github).map(({ name }) => name);
    const push = { ref: "refs/heads/main", event_name: "push" };
    const request = { ref: "refs/pull/7/merge", event_name: "pull_request" };
    expect(namesFor(push)).to.deep.equal(["Install svc", "Check", "Publish"]);
    expect(namesFor(request)).to.deep.equal(["Install svc", "Check"]);

    const { folder, variables, secrets } = await newRepository();
    const { cwd, home } = newJob(folder);
    const [temp, paths] = [join(home, "temp"), join(home, "path")];
    mkdirSync(temp);
    writeFileSync(paths, "");
    const filledIn = (values: Environment = {}): Environment => {
      const evaluate = (expression: string) =>
        String(runInNewContext(expression, { vars: variables, secrets, github: push }));
      const fill = (value: string) =>
        value.replace(/\$\{\{(.+?)\}\}/g, (_, expression: string) => evaluate(expression));
      return Object.fromEntries(Object.entries(values).map(([name, value]) => [name, fill(value)]));
    };
    const { env } = template<GithubWorkflow>("github-workflow.yml");
    for (const step of stepsFor(push)) {
      const added = readFileSync(paths, "utf8").split("\n").filter(Boolean).reverse();
      await runScript(step.run!, ["-e"], cwd, {
        ...{ ...MACHINE, HOME: home, RUNNER_TEMP: temp, GITHUB_PATH: paths, CI: "true" },
        ...{ ...filledIn(env), ...filledIn(step.env), PATH: [...added, process.env["PATH"]].join(":") },
      });
      if (step.name === "Check") expect((await runLive(folder)).code).to.equal(1);
    }
    expect(JSON.parse((await runLive(folder)).out).result).to.deep.equal({ text: "Hello world" });
  });

  it("of GitLab checks, and publishes the default branch", async () => {
    const made = await newRepository();
    const document = template<Record<string, GitlabJob>>("gitlab-ci.yml");
    for (const name of ["check", "publish"]) {
      const job = { ...document[document[name]!.extends!], ...document[name] };
      const { cwd, home } = newJob(made.folder);
      const env = { ...MACHINE, HOME: home, CI: "true", CI_PROJECT_DIR: cwd, ...made.variables, ...made.secrets };
      await runScript([...job.before_script!, ...job.script!].join("\n"), ["-eo", "pipefail"], cwd, env);
    }
    expect(JSON.parse((await runLive(made.folder)).out).result).to.deep.equal({ text: "Hello world" });
  });
});
