/** Props of an action's workspace, which it passes on to its dock. */
import type { PageProps } from "../shell/page-props.js";

export interface WorkspaceProps extends PageProps {
  id: number | "new";
  onCreated: (id: number) => void;
}
