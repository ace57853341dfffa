/** Button and menu with which a person selects the columns of the table of runs. The menu is loaded at its first use. */
import { lazy } from "react";
import { importOrThrowLoadError } from "../shell/load-error.js";
import { LoadOnFirstUse } from "../shell/menu-buttons.js";
import { ColumnsButton } from "./columns-button.js";
import type { RunColumnsState } from "./use-columns.js";

const ColumnsMenu = lazy(async () => ({
  default: (await importOrThrowLoadError(import("./columns-menu.js"))).ColumnsMenu,
}));

export const ChooseColumns = (columns: RunColumnsState) => (
  <LoadOnFirstUse popupKind="menu" renderButton={ColumnsButton}>
    <ColumnsMenu {...columns} />
  </LoadOnFirstUse>
);
