/** Icons of Studio's pages, for the sidebar and the command palette. */
import ArrowLeftRight from "icon:arrow-left-right";
import Bell from "icon:bell";
import CalendarClock from "icon:calendar-clock";
import Database from "icon:database";
import FolderGit from "icon:folder-git";
import GitBranch from "icon:git-branch";
import History from "icon:history";
import House from "icon:house";
import Image from "icon:image";
import KeyRound from "icon:key-round";
import Play from "icon:play";
import Plug from "icon:plug";
import ScrollText from "icon:scroll-text";
import Send from "icon:send";
import Settings from "icon:settings";
import Siren from "icon:siren";
import SlidersHorizontal from "icon:sliders-horizontal";
import Users from "icon:users";
import Zap from "icon:zap";
import type { IconComponent } from "../shared/icon.js";
import type { SidebarLink } from "./views.js";

export const PAGE_ICONS: Record<SidebarLink, IconComponent> = {
  home: House,
  actions: Zap,
  data: Database,
  media: Image,
  runs: Play,
  schedule: CalendarClock,
  outbox: Send,
  notifications: Bell,
  alerts: Siren,
  "app/audit": ScrollText,
  settings: SlidersHorizontal,
  "app/connections": Plug,
  "app/people": Users,
  "app/tokens": KeyRound,
  "app/versions": History,
  "app/stages": GitBranch,
  "app/git": FolderGit,
  "app/transfer": ArrowLeftRight,
  "app/general": Settings,
};
