/**
 * Menus of Studio: the list of apps, the account menu, and the drawer that contains the sidebar in a narrow window. This file is loaded when
 * a person first presses the button of a menu. The menu then opens.
 */

import CircleUser from "icon:circle-user";
import LayoutGrid from "icon:layout-grid";
import LogOut from "icon:log-out";
import * as Dialog from "@radix-ui/react-dialog";
import * as Dropdown from "@radix-ui/react-dropdown-menu";
import * as Popover from "@radix-ui/react-popover";
import { Command } from "cmdk";
import { type ReactNode, useEffect, useRef, useState } from "react";
import type { App } from "../shared/model.js";
import { AccountButton, AppButton, DrawerButton, LetterIcon } from "./menu-buttons.js";
import { createHref, type Navigation } from "./studio-route.js";

const ICON_PIXELS = 16;

interface AppMenuProps {
  apps: App[];
  app: App;
  go: Navigation["go"];
}

export function AppMenu({ apps, app, go }: AppMenuProps) {
  const [isOpen, setOpen] = useState(true);
  const closeAndGo = (change: Parameters<typeof go>[0]) => {
    setOpen(false);
    go(change);
  };
  return (
    <Popover.Root open={isOpen} onOpenChange={setOpen}>
      <Popover.Trigger asChild>
        <AppButton name={app.name} />
      </Popover.Trigger>
      <Popover.Portal>
        <Popover.Content className="menu app-menu" align="start" sideOffset={6} aria-label="Apps">
          <Command label="Apps">
            <Command.Input placeholder="Find an app" />
            <Command.List>
              <Command.Empty>No app has this name.</Command.Empty>
              {apps.map(({ id, name, isPublished }) => (
                <Command.Item
                  key={id}
                  value={`${name} ${id}`}
                  onSelect={() => closeAndGo({ appId: id, view: "home", item: null, query: {} })}
                >
                  <LetterIcon name={name} />
                  <span className="grow">{name}</span>
                  {id === app.id && <span className="hint">open</span>}
                  <span
                    className={isPublished ? "dot on" : "dot"}
                    title={isPublished ? "published" : "not published"}
                    aria-hidden="true"
                  />
                </Command.Item>
              ))}
              <Command.Item
                // Shows this option even if the search finds no app, because a list box must always contain an option.
                forceMount
                value="All apps"
                onSelect={() => closeAndGo({ view: "apps", appId: null, item: null, query: {} })}
              >
                <LayoutGrid size={ICON_PIXELS} aria-hidden />
                <span className="grow">All apps and organizations</span>
              </Command.Item>
            </Command.List>
          </Command>
        </Popover.Content>
      </Popover.Portal>
    </Popover.Root>
  );
}

interface AccountMenuProps {
  app: App;
  email: string;
  signOut: () => void;
}

export function AccountMenu({ app, email, signOut }: AccountMenuProps) {
  return (
    // The menu is not modal, so that the page stays readable. It is not in a portal, so that it is part of the
    // navigation landmark.
    <Dropdown.Root modal={false} defaultOpen>
      <Dropdown.Trigger asChild>
        <AccountButton email={email} />
      </Dropdown.Trigger>
      <Dropdown.Content className="menu" align="start" side="top" sideOffset={6}>
        <Dropdown.Item asChild>
          <a href={createHref({ appId: app.id, view: "account" })}>
            <CircleUser size={ICON_PIXELS} aria-hidden /> Account
          </a>
        </Dropdown.Item>
        <Dropdown.Separator className="menu-line" />
        <Dropdown.Item onSelect={signOut}>
          <LogOut size={ICON_PIXELS} aria-hidden /> Sign out
        </Dropdown.Item>
      </Dropdown.Content>
    </Dropdown.Root>
  );
}

interface NavigationDrawerProps {
  /** Text that identifies the open page. When it changes, the drawer closes. */
  openPageKey: string;
  /** Renders the content of the drawer. @param close closes the drawer and returns the focus to its button */
  children: (close: () => void) => ReactNode;
}

/** Drawer that slides over the page, and the button that opens it. */
export function NavigationDrawer({ openPageKey, children }: NavigationDrawerProps) {
  const [isOpen, setOpen] = useState(true);
  const lastPageKey = useRef(openPageKey);
  useEffect(() => {
    if (lastPageKey.current !== openPageKey) setOpen(false);
    lastPageKey.current = openPageKey;
  }, [openPageKey]);
  return (
    <Dialog.Root open={isOpen} onOpenChange={setOpen}>
      <Dialog.Trigger asChild>
        <DrawerButton />
      </Dialog.Trigger>
      <Dialog.Portal>
        <Dialog.Overlay className="drawer-shade" />
        <Dialog.Content
          className="sidebar drawer"
          aria-describedby={undefined}
          // A link to the open page does not change the URL, so the effect above does not close the drawer. This
          // listener closes it.
          onClick={({ target }) => {
            if ((target as Element).closest("a[href]")) setOpen(false);
          }}
        >
          <Dialog.Title className="unseen">Navigation</Dialog.Title>
          {children(() => setOpen(false))}
        </Dialog.Content>
      </Dialog.Portal>
    </Dialog.Root>
  );
}
