/** svc stage, svc promote: apps that are stages of one, and the way of a manifest from one to the next. */
import type { Command } from "commander";
import { checkedApp } from "../config.js";
import { wrongUse } from "../failure.js";
import type { Run } from "../session.js";

const APP = "/v1/apps/:app";

export function addStages(program: Command, run: Run): void {
  const stage = program.command("stage").description("stages of the app");
  stage
    .command("list", { isDefault: true })
    .description("list the stages")
    .action(() =>
      run(async ({ client, output }) => {
        const { body } = await client.request("GET", `${APP}/stages`);
        output.table(
          body.stages.map((one: Record<string, unknown>) => [String(one["id"]), String(one["stage"] ?? one["name"])]),
        );
        output.json(body);
      }),
    );
  stage
    .command("create")
    .argument("<name>", "name of the stage, for example staging")
    .option("--expires-in <hours>", "remove the stage after so many hours")
    .description("make an app that is a stage of this one")
    .action((name: string, { expiresIn }: { expiresIn?: string }) =>
      run(async ({ client, output }) => {
        if (expiresIn !== undefined && !/^\d+$/.test(expiresIn))
          throw wrongUse("--expires-in must be a number of hours");
        const body = { name, ...(expiresIn !== undefined && { expiresInHours: Number(expiresIn) }) };
        const { body: made } = await client.request("POST", `${APP}/stages`, { body });
        output.line(`stage ${name} is app ${made.app.id}`, "green");
        output.json(made);
      }),
    );
  program
    .command("promote")
    .requiredOption("--from <app>", "ID of the app whose definitions this app gets")
    .option("--plan", "only show what would change")
    .description("apply another stage's definitions to this app, whole or not at all")
    .action(({ from, plan = false }: { from: string; plan?: boolean }) =>
      run(async (session) => {
        const { client, output } = session;
        const body = { fromAppId: checkedApp(from, "--from") };
        const planned = await client.request("POST", `${APP}/promotions`, { body, query: { plan: true } });
        for (const change of ["created", "changed", "removed"]) {
          for (const { kind, name } of planned.body.plan[change]) output.line(`${change.padEnd(8)} ${kind} ${name}`);
        }
        if (plan) return output.json(planned.body);
        await session.confirm(`Promote app ${from} to app ${client.target.app}?`);
        const { body: done } = await client.request("POST", `${APP}/promotions`, { body });
        output.line("Promoted", "green");
        output.json(done);
      }),
    );
}
