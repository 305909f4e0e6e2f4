// How this installation is set up: agents, models, keys, servers of tools, plugins, permissions, settings, usage.

import type { ComponentChildren } from "preact";
import { Bars } from "./icons";
import { Agents } from "./settings/agents";
import { McpServers } from "./settings/mcp_servers";
import { Models } from "./settings/models";
import { Permissions } from "./settings/permissions";
import { Plugins } from "./settings/plugins";
import { Providers } from "./settings/providers";
import { UsageCharts } from "./settings/usage";
import { Values } from "./settings/values";
import { words } from "./words";

const SECTIONS: { name: string; label: () => string; draw: (props: SectionProps) => ComponentChildren }[] = [
  { name: "models", label: () => words.models, draw: (props) => <Models {...props} /> },
  { name: "providers", label: () => words.providers, draw: () => <Providers /> },
  { name: "agents", label: () => words.agents, draw: (props) => <Agents {...props} /> },
  { name: "mcp", label: () => words.mcpServers, draw: () => <McpServers /> },
  { name: "plugins", label: () => words.plugins, draw: () => <Plugins /> },
  { name: "permissions", label: () => words.permissions, draw: () => <Permissions /> },
  { name: "values", label: () => words.allSettings, draw: () => <Values /> },
  { name: "usage", label: () => words.usage, draw: () => <UsageCharts /> },
];

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
  const shown = SECTIONS.find((one) => one.name === section) ?? SECTIONS[0];
  return (
    <main class="conversation settings">
      <header class="bar">
        <button type="button" class="icon narrow" aria-label={words.sessions} onClick={showMenu}><Bars /></button>
        <h1>{words.settings}</h1>
        <button type="button" onClick={close}>{words.close}</button>
      </header>
      <div class="settings-body">
        <nav class="sections" aria-label={words.settings}>
          {SECTIONS.map((one) => (
            <button key={one.name} type="button" aria-current={one === shown ? "page" : undefined} onClick={() => open(one.name)}>{one.label()}</button>
          ))}
        </nav>
        <section class="section" tabIndex={0} aria-label={shown?.label()}>
          <h2>{shown?.label()}</h2>
          {shown?.draw({ connect, agentsChanged })}
        </section>
      </div>
    </main>
  );
}
