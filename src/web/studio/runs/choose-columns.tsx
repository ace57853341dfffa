/** Menu that selects the columns of the table of runs. It is loaded at the first use. */
import { lazy } from "react";
import { loading } from "../shell/load-error.js";
import { OnFirstUse } from "../shell/menu-buttons.js";
import { ColumnsButton } from "./columns-button.js";
import type { Columns } from "./use-columns.js";

const ColumnsMenu = lazy(async () => ({ default: (await loading(import("./columns-menu.js"))).ColumnsMenu }));

export const ChooseColumns = (columns: Columns) => (
  <OnFirstUse popup="menu" button={ColumnsButton}>
    <ColumnsMenu {...columns} />
  </OnFirstUse>
);
