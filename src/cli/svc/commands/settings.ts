/**
 * svc settings: lists the keys of settings, sets a value from standard input, removes a setting. Prints the values of public settings only.
 */
import type { Command } from "commander";
import { createUsageError } from "../failure.js";
import type { CommandRunner } from "../session.js";

const SETTINGS_ROUTE = "/v1/apps/:app/settings";

const getSettingTier = (key: string) =>
  key.startsWith("__") ? "protected" : key.startsWith("_") ? "private" : "public";

/** Parses the value of a setting as JSON. Text that is not JSON is used as it is, without its last line break. */
function parseSettingValue(text: string): unknown {
  const trimmed = text.replace(/\r?\n$/, "");
  try {
    return JSON.parse(trimmed);
  } catch {
    return trimmed;
  }
}

export function addSettingsCommand(program: Command, run: CommandRunner): void {
  const settings = program.command("settings").description("settings of the app");

  settings
    .command("list", { isDefault: true })
    .description("list the keys of the settings with their tiers, and the values of public settings")
    .action(() =>
      run(async ({ client, output }) => {
        const [{ body: values }, { body: status }] = await Promise.all([
          client.sendRequest("GET", SETTINGS_ROUTE),
          client.sendRequest("GET", `${SETTINGS_ROUTE}/status`),
        ]);
        const hiddenKeys = Object.keys(status.configured).filter((key) => status.configured[key] === true);
        const keys = [...new Set([...Object.keys(values), ...hiddenKeys])].sort();
        const listedSettings = keys.map((key) => {
          const tier = getSettingTier(key);
          return { key, tier, ...(tier === "public" && { value: values[key] }) };
        });
        output.writeTable(
          listedSettings.map(({ key, tier, value }) => [key, tier, tier === "public" ? JSON.stringify(value) : ""]),
        );
        output.writeJson({ settings: listedSettings });
      }),
    );

  settings
    .command("set")
    .argument("<key>", "key of the setting; _ makes it private, __ protected")
    .description("set a value, which is read from standard input")
    .action((key: string) =>
      run(async (session) => {
        if (session.environment.stdin.isTTY === true) session.output.writeNote("Type the value, then Ctrl D");
        const text = await session.readStdin();
        if (text === "") throw createUsageError("standard input must contain the value of the setting (got nothing)");
        await session.client.sendRequest("POST", SETTINGS_ROUTE, { body: { [key]: parseSettingValue(text) } });
        session.output.writeLine(`set ${key}`, "green");
        session.output.writeJson({ key });
      }),
    );

  settings
    .command("unset")
    .argument("<keys...>", "keys of the settings")
    .description("remove settings")
    .action((keys: string[]) =>
      run(async (session) => {
        await session.confirm(`Remove ${keys.join(", ")}?`);
        await session.client.sendRequest("DELETE", SETTINGS_ROUTE, { body: { keys } });
        session.output.writeLine(`removed ${keys.join(", ")}`, "green");
        session.output.writeJson({ keys });
      }),
    );
}
