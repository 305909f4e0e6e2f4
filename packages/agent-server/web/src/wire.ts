// What the API sends and takes, as far as the page reads it. The full description is /openapi.json.

export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };
export type JsonObject = { [name: string]: Json };

export interface Labels {
  folder: string | null;
  tags: string[];
  archived: boolean;
  pinned: boolean;
}

export interface SessionInfo {
  id: string;
  title: string;
  agent_id: string | null;
  created: number;
  updated: number;
  messages: number;
  parent_id: string | null;
  match?: string | null;
  forked_at?: number | null;
  labels?: Labels | null;
}

export interface Part {
  type: string;
  text?: string;
  name?: string;
  mime_type?: string;
  data?: string;
}

export interface ToolCall {
  id?: string;
  function?: { name?: string; arguments?: string };
  custom?: { name?: string; input?: string };
}

export interface Message {
  index?: number;
  role: string;
  content: Json;
  metadata?: {
    tool_calls?: ToolCall[];
    tool_call_id?: string;
    tool_name?: string;
    display?: ToolDisplay;
    interrupted?: Json;
    reasoning?: Json;
    is_error?: boolean;
  };
  multipartContent?: Part[] | null;
  tool_result?: { is_error?: boolean; text?: string; display?: ToolDisplay } | null;
}

/** What a tool shows of a call or of its result, for people. */
export interface ToolDisplay {
  type: string;
  title?: string;
  content?: Json;
}

/** One thing that an agent has planned to do. */
export interface PlanItem {
  text: string;
  state: string;
}

export interface Waiting {
  seq: number;
  message: Message;
  mode: InputMode;
}

export type InputMode = "steer" | "queue" | "interrupt";

export interface Suspension {
  message: string;
  tool: string;
  action?: string;
  call: ToolCall;
  parameters: {
    tool?: string;
    preview?: string;
    arguments?: Json;
    display?: ToolDisplay | null;
    reason?: string;
    suggestions?: string[];
    together?: string[];
  };
  response_schema?: { type?: string; enum?: Json[] } | null;
}

export interface Approval {
  id: string;
  session_id: string;
  suspension: Suspension;
  decision: JsonObject | null;
}

/** An answer that a crash has cut short, with the calls that have no result. */
export interface Unfinished {
  text: string;
  calls: { call_id: string; name: string; arguments: Json; begun: boolean }[];
}

export interface SessionState {
  info: SessionInfo;
  running: "here" | "elsewhere" | null;
  queued: Waiting[];
  approvals: Approval[];
  last_event: number;
  plan: PlanItem[];
  unfinished: Unfinished | null;
}

/** An event of a session; what else it has depends on its type. */
export interface Event {
  type: string;
  seq?: number;
  [name: string]: unknown;
}

export interface Usage {
  total: { input_tokens?: number; output_tokens?: number; total_tokens?: number; cost?: number | null };
}

export interface Input {
  name: string;
  type?: string;
  label?: string;
  description?: string;
  placeholder?: string;
  widget?: string;
  required?: boolean;
  default?: Json;
  options?: Json[];
  enum?: Json[];
}

export interface Action {
  id: string;
  plugin: string;
  label?: string;
  description?: string;
  inputs?: { [name: string]: Omit<Input, "name"> } | Input[];
  manual?: boolean;
  trigger?: Json;
  confirm?: string | true;
  action_owner?: "provider_extension" | "feature" | "application";
}

export interface UiElement {
  ui_type: string;
  plugin: string;
  label?: string;
  description?: string;
  order?: number;
  action_id?: string;
  item_actions?: string[];
  dialog?: { kind?: string; title?: string; body?: string; confirm?: string | true; inputs?: Input[] };
}

/** What an action wants shown. */
export interface Display {
  body: string;
  format?: "text" | "markdown";
  title?: string;
  variant?: "info" | "success" | "warning" | "error";
  presentation?: "modal" | "inline" | "banner";
  dismissible?: boolean;
  display_id?: string;
  actions?: DisplayAction[];
}

export type DisplayAction =
  | { kind: "open_url"; id: string; label: string; url: string }
  | { kind: "copy_text"; id: string; label: string; text: string }
  | {
      kind: "run_action";
      id: string;
      label: string;
      plugin: string;
      action_id: string;
      params?: JsonObject;
      preserve_display?: boolean;
    };

export interface Effect {
  type: string;
  text?: string;
  variant?: Display["variant"];
  session_id?: string;
  url?: string;
  what?: "session" | "sessions" | "all";
  to?: string;
}

/** What a plugin suggests for the text before the cursor; `start` counts back from there. */
export interface Completion {
  replacement?: string;
  start?: number;
  display?: string;
  display_meta?: string;
}

/** One of the things that a plugin keeps. */
export interface Item {
  id: string;
  title?: string;
  text?: string;
  origin?: string;
  enabled?: boolean;
  problem?: string;
  values?: JsonObject;
  actions?: string[];
}

export interface ActionResult {
  items?: Item[];
  display?: Display;
  message?: string;
  error?: { message?: string };
  ui_effects?: Effect[];
}
