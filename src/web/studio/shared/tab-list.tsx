/** Tabs with the panel of the selected tab. The caller stores which tab is selected. */
import * as Tabs from "@radix-ui/react-tabs";
import type { ReactNode } from "react";

interface TabPanelProps<Name extends string> {
  label: string;
  tabNames: readonly Name[];
  selectedName: Name;
  selectTab: (name: Name) => void;
  disabledNames?: readonly Name[];
  /** True: arrow keys only move the focus and do not select a tab. Use this if selecting a tab can ask about unsaved changes. */
  isManual?: boolean;
  panelClass: string;
  children: ReactNode;
}

export function TabPanel<Name extends string>(props: TabPanelProps<Name>) {
  const { label, tabNames, selectedName, selectTab, disabledNames = [], isManual, panelClass, children } = props;
  return (
    <Tabs.Root
      className="tabbed"
      value={selectedName}
      onValueChange={(name) => selectTab(name as Name)}
      activationMode={isManual ? "manual" : "automatic"}
    >
      <Tabs.List className="tabs" aria-label={label}>
        {tabNames.map((name) => (
          <Tabs.Trigger key={name} value={name} className="tab" data-tab={name} disabled={disabledNames.includes(name)}>
            {name}
          </Tabs.Trigger>
        ))}
      </Tabs.List>
      <Tabs.Content value={selectedName} className={panelClass}>
        {children}
      </Tabs.Content>
    </Tabs.Root>
  );
}
