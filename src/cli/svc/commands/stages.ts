/** svc stage and svc promote: create stages (apps with the same definitions, such as a test app), and copy definitions between stages. */
import type { Command } from "commander";
import { describeValue } from "../../../rules/describe-value.js";
import { ServiceResponseError } from "../client.js";
import { parseAppId } from "../config.js";
import { createUsageError } from "../failure.js";
import type { CliSession, CommandRunner } from "../session.js";
import { printBindingsWithoutValue } from "./sync.js";

const APP_ROUTE = "/v1/apps/:app";

interface Stage {
  appId: number;
  name: string | null;
  appName: string;
  expiresAt: string | null;
}

interface Promotion {
  id: number;
  fromAppId: number | null;
  rolledBackTo: number | null;
  createdAt: string;
}

/**
 * Returns a command runner that explains FORBIDDEN: only an editor's token may change stages. API tokens and the token of `svc login` may
 * not.
 */
const createEditorRunner =
  (run: CommandRunner): CommandRunner =>
  (work) =>
    run(async (session) => {
      try {
        return await work(session);
      } catch (error) {
        // A FORBIDDEN error with another text already contains its reason.
        if (!(error instanceof ServiceResponseError && error.message === "FORBIDDEN: permission denied")) throw error;
        const reason =
          "permission denied; set SVC_TOKEN to a token of an editor (docs/guides/api-token.md), because an API token and the token of svc login cannot change stages";
        throw new ServiceResponseError(error.http, { ...error.details, error: reason });
      }
    });

const CHANGE_KINDS = ["created", "changed", "removed"] as const;
type PromotionPlan = Record<(typeof CHANGE_KINDS)[number], { kind: string; name: string }[]> & {
  missing?: { name: string }[];
};

function printPlan(session: CliSession, plan: PromotionPlan): void {
  const { output } = session;
  for (const change of CHANGE_KINDS)
    for (const { kind, name } of plan[change]) output.writeLine(`${change.padEnd(8)} ${kind} ${name}`);
  printBindingsWithoutValue(session, plan.missing);
}

function addPromotionCommands(stageCommand: Command, run: CommandRunner, runAsEditor: CommandRunner): void {
  stageCommand
    .command("promotions")
    .description("list what was promoted to this app, newest first")
    .action(() =>
      run(async ({ client, output }) => {
        const { body } = await client.sendRequest("GET", `${APP_ROUTE}/promotions`);
        output.writeTable(
          body.promotions.map(({ id, createdAt, fromAppId, rolledBackTo }: Promotion) => [
            String(id),
            createdAt,
            rolledBackTo === null ? `from app ${fromAppId}` : `back to ${rolledBackTo}`,
          ]),
        );
        output.writeJson(body);
      }),
    );
  stageCommand
    .command("rollback")
    .argument("<promotion>", "ID of a promotion; the newest promotion is undone, an earlier promotion is restored")
    .description("restore the definitions as they were after a promotion, all or none")
    .action((promotion: string) =>
      runAsEditor(async (session) => {
        if (!/^[1-9]\d{0,14}$/.test(promotion))
          throw createUsageError(
            `the promotion must be an ID, a positive integer (got ${describeValue(promotion)}); "svc stage promotions" lists the IDs`,
          );
        await session.confirm(`Roll app ${session.target.app} back by promotion ${promotion}?`);
        const { body } = await session.client.sendRequest("POST", `${APP_ROUTE}/promotions/${promotion}/rollback`);
        printPlan(session, body.promotion.plan);
        session.output.writeLine("Rolled back", "green");
        session.output.writeJson(body);
      }),
    );
}

export function addStagesCommand(program: Command, run: CommandRunner): void {
  const runAsEditor = createEditorRunner(run);
  const stageCommand = program.command("stage").description("stages of the app");
  stageCommand
    .command("list", { isDefault: true })
    .description("list the stages")
    .action(() =>
      run(async ({ client, output }) => {
        const { body } = await client.sendRequest("GET", `${APP_ROUTE}/stages`);
        output.writeTable(
          body.stages.map(({ appId, name, appName, expiresAt }: Stage) => [
            String(appId),
            name ?? `(${appName})`,
            expiresAt ?? "",
          ]),
        );
        output.writeJson(body);
      }),
    );
  stageCommand
    .command("create")
    .argument("<name>", "name of the stage, for example staging")
    .option("--expires-in <hours>", "delete the stage after this number of hours")
    .description("create a new app that is a stage of this app")
    .action((name: string, { expiresIn }: { expiresIn?: string }) =>
      runAsEditor(async ({ client, output }) => {
        if (expiresIn !== undefined && !/^\d+$/.test(expiresIn))
          throw createUsageError(`--expires-in must be a whole number of hours (got ${describeValue(expiresIn)})`);
        const body = { name, ...(expiresIn !== undefined && { expiresInHours: Number(expiresIn) }) };
        const { body: createdStage } = await client.sendRequest("POST", `${APP_ROUTE}/stages`, { body });
        output.writeLine(`stage ${name} is app ${createdStage.app.id}`, "green");
        output.writeJson(createdStage);
      }),
    );
  stageCommand
    .command("remove")
    .argument("<app>", "ID of a preview, a stage that expires")
    .description("delete a preview with its data")
    .action((app: string) =>
      runAsEditor(async (session) => {
        const id = parseAppId(app, "the stage");
        await session.confirm(`Delete app ${id} with its data?`);
        const { body } = await session.client.sendRequest("DELETE", `${APP_ROUTE}/stages/${id}`);
        session.output.writeLine(`Removed app ${id}`, "green");
        session.output.writeJson(body);
      }),
    );
  addPromotionCommands(stageCommand, run, runAsEditor);
  program
    .command("promote")
    .requiredOption("--from <app>", "ID of the app whose definitions this app gets")
    .option("--plan", "only show what would change")
    .description("apply another stage's definitions to this app, all or none")
    .action(({ from, plan = false }: { from: string; plan?: boolean }) =>
      runAsEditor(async (session) => {
        const { client, output } = session;
        const body = { fromAppId: parseAppId(from, "--from") };
        const plannedPromotion = await client.sendRequest("POST", `${APP_ROUTE}/promotions`, {
          body,
          query: { plan: true },
        });
        printPlan(session, plannedPromotion.body.plan);
        if (plan) return output.writeJson(plannedPromotion.body);
        await session.confirm(`Promote app ${from} to app ${client.target.app}?`);
        const headers = { "if-match": plannedPromotion.headers.get("etag")! };
        const { body: promotionResult } = await client.sendRequest("POST", `${APP_ROUTE}/promotions`, {
          body,
          headers,
        });
        output.writeLine("Promoted", "green");
        output.writeJson(promotionResult);
      }),
    );
}
