/** Button of the menu of columns, also before the menu is loaded. */
import Columns3 from "lucide-react/icons/columns-3";
import { type ComponentProps, lazy } from "react";
import { OnFirstUse } from "../shell/menu-buttons.js";
import { loading } from "../shell/page-boundary.js";
import type { Columns } from "./use-columns.js";

const ColumnsMenu = lazy(async () => ({ default: (await loading(import("./columns-menu.js"))).ColumnsMenu }));

export const ColumnsButton = (props: ComponentProps<"button">) => (
  <button type="button" className="quiet columns-button" {...props}>
    <Columns3 size={14} aria-hidden /> Columns
  </button>
);

export const ChooseColumns = (columns: Columns) => (
  <OnFirstUse popup="menu" button={ColumnsButton}>
    <ColumnsMenu {...columns} />
  </OnFirstUse>
);
