// How this installation is set up: agents, models, keys, servers of tools, plugins, permissions, settings, usage.

import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { Bars } from "./icons";
import type { Offers } from "./offers";
import { Agents } from "./settings/agents";
import { Collection, useCollections } from "./settings/collection";
import { McpServers } from "./settings/mcp_servers";
import { Models } from "./settings/models";
import { Permissions } from "./settings/permissions";
import { Plugins } from "./settings/plugins";
import { Providers } from "./settings/providers";
import { UsageCharts } from "./settings/usage";
import { Values } from "./settings/values";
import { oneLine, visible } from "./text";
import { words } from "./words";

interface Section {
  name: string;
  label: () => string;
  draw: (props: SectionProps) => ComponentChildren;
}

const SECTIONS: Section[] = [
  { name: "models", label: () => words.models, draw: (props) => <Models {...props} /> },
  { name: "providers", label: () => words.providers, draw: () => <Providers /> },
  { name: "agents", label: () => words.agents, draw: (props) => <Agents {...props} /> },
  { name: "mcp", label: () => words.mcpServers, draw: () => <McpServers /> },
  { name: "plugins", label: () => words.plugins, draw: () => <Plugins /> },
  { name: "permissions", label: () => words.permissions, draw: () => <Permissions /> },
  { name: "values", label: () => words.allSettings, draw: () => <Values /> },
  { name: "usage", label: () => words.usage, draw: () => <UsageCharts /> },
];

/** Behind which section those of plugins come. */
const KEPT_AT = SECTIONS.findIndex((one) => one.name === "plugins") + 1;

/** Return a section for each collection of a plugin. */
function collections(offers: Offers | undefined): Section[] {
  if (offers === undefined) return [];
  return offers.collections.map((element) => ({
    name: `${element.plugin}.${element.action_id}`,
    label: () => oneLine(element.label ?? element.plugin, 40),
    draw: () => <Collection key={`${element.plugin}.${element.action_id}`} element={element} offers={offers} />,
  }));
}

export interface SectionProps {
  /** Opens the dialogue that connects a model. */
  connect: () => void;
  /** There are other agents than before. */
  agentsChanged: () => void;
}

interface Props extends SectionProps {
  section: string;
  open: (section: string) => void;
  close: () => void;
  showMenu: () => void;
}

export function SettingsView({ section, open, close, connect, agentsChanged, showMenu }: Props) {
  const [note, setNote] = useState("");
  const kept = collections(useCollections(setNote));
  const sections = [...SECTIONS.slice(0, KEPT_AT), ...kept, ...SECTIONS.slice(KEPT_AT)];
  const shown = sections.find((one) => one.name === section) ?? SECTIONS[0];
  return (
    <main class="conversation settings">
      <header class="bar">
        <button type="button" class="icon narrow" aria-label={words.sessions} onClick={showMenu}><Bars /></button>
        <h1>{words.settings}</h1>
        <button type="button" onClick={close}>{words.close}</button>
      </header>
      <div class="settings-body">
        <nav class="sections" aria-label={words.settings}>
          {sections.map((one) => (
            <button key={one.name} type="button" aria-current={one === shown ? "page" : undefined} onClick={() => open(one.name)}>{one.label()}</button>
          ))}
        </nav>
        <section class="section" tabIndex={0} aria-label={shown?.label()}>
          <h2>{shown?.label()}</h2>
          {note && <p role="status">{visible(note)}</p>}
          {shown?.draw({ connect, agentsChanged })}
        </section>
      </div>
    </main>
  );
}
